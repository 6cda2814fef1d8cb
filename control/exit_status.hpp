// SPDX-License-Identifier: BSD-3-Clause
// The exit statuses of parc's programs that are not their jobs': as env(1), timeout(1) and shells have them.
#pragma once

#include <sys/wait.h>

namespace parc {

inline constexpr int status_failure = 1;
inline constexpr int status_usage = 2;  // a command line that is wrong
inline constexpr int status_late = 124; // a job ran longer than its --timeout
// Failure of parc itself, where it was to run a command; for parc run and parc mpi a wrong command line, too.
inline constexpr int status_failed = 125;
inline constexpr int status_not_executable = 126;
inline constexpr int status_not_found = 127;
inline constexpr int status_signal = 128; // plus the number of the signal that ended the command

// The exit status to return for a child that ended with the status `waited` of wait(2).
[[nodiscard]] inline int exit_status_of(int waited) {
  return WIFSIGNALED(waited) ? status_signal + WTERMSIG(waited) : WEXITSTATUS(waited);
}

} // namespace parc
