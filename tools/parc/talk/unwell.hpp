// SPDX-License-Identifier: BSD-3-Clause
// The words for a kernel that runs and cannot be worked with: what is wrong, and what to do. One that is
// stopped, one that hangs, and one in another container, whose process has no number here (0).
#pragma once

#include <fmt/format.h>
#include <string>
#include <sys/types.h>

namespace parc::tools::unwell {

inline constexpr const char* is_stopped = "is stopped by a signal or a debugger";
inline constexpr const char* is_silent = "does not answer";
inline constexpr const char* is_elsewhere =
    "a kernel runs on this runtime directory that cannot be seen here: it is in another container";
inline constexpr const char* if_elsewhere =
    "use parc inside that container, or start this one with --pid=host --ipc=host";

inline std::string if_stopped(pid_t process) {
  return fmt::format("kill -CONT {}", process);
}
inline std::string if_silent(pid_t process) {
  return fmt::format("see its log; end it with parc stop, or kill -9 {}, and start it again: parcd --detach",
                     process);
}

} // namespace parc::tools::unwell
