// SPDX-License-Identifier: BSD-3-Clause
// Starting one process of a job: vfork, then in the child everything that exec does not undo, then exec.
//
// The child is in a process group of its own, dies with the kernel (PR_SET_PDEATHSIG), is bound to the
// processors that it is given, has directory, umask, limits and environment of `parc run`'s caller, /dev/null
// or a pipe as its input, and nothing else open but its output pipes and the two pipes of its session.
// Between vfork and exec it makes only async-signal-safe calls (daemon/process/child_process.hpp).
#pragma once

#include "daemon/process/cores.hpp"
#include "jobs/program.hpp"
#include "system/error.hpp"
#include "system/fd.hpp"

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <sys/types.h>
#include <vector>

namespace parc::daemon {

// The kernel's ends: close-on-exec and non-blocking.
struct StartedProcess {
  pid_t id = -1;
  Fd process; // pidfd
  Fd input;   // of a rank that reads what `parc run` does
  Fd output;
  Fd errors;
  Fd trace;  // of a program that is traced
  Fd report; // ends empty when the program runs, else with a StartReport
  Fd from_program;
  Fd to_program;
};

// How many of these the kernel keeps while the program runs.
[[nodiscard]] std::size_t descriptors_of(const Program& program);

struct StartReport {
  enum class Stage : int { setup, directory, binding, program, interpreter } stage;
  int error; // errno
};

// `variables` are put over the environment of the program; `processors`: null: all that the kernel has. An
// error means that no process was made.
[[nodiscard]] Result<StartedProcess> start_process(const Program& program,
                                                   const std::vector<std::string>& variables,
                                                   bool reads_input, const Processors* processors);

// How a process ended.
struct RankExit {
  std::uint32_t status = 0; // where signal is 0
  std::uint32_t signal = 0;
  bool no_memory = false; // killed while the system ended processes for want of memory
};

// The whole process group of one that has not been reaped.
void signal_group(pid_t id, int signal);
// Of one that has ended: of a pidfd that is readable.
[[nodiscard]] RankExit reap(const Fd& process);
// What they may have left in the system: they had no time to say good-bye, and have been reaped.
void clean_up_after(const std::vector<pid_t>& killed);
// What the ranks of a job that is over have started, and lives on outside of their process groups. Goes on in
// a thread.
void end_strays(const std::string& job_variable);

// How the processes of jobs are made and ended: by the system, or by who simulates them.
struct Processes {
  std::function<Result<StartedProcess>(const Program&, const std::vector<std::string>&, bool,
                                       const Processors*)>
      start = daemon::start_process;
  std::function<void(pid_t id, int signal)> signal = signal_group;
  std::function<RankExit(const Fd& process)> reap = daemon::reap;
  std::function<void(const std::vector<pid_t>& killed)> clean_up_after = daemon::clean_up_after;
  std::function<void(const std::string& job_variable)> end_strays = daemon::end_strays;
};

// What a report pipe holds that can be read without waiting: none when the program runs.
[[nodiscard]] std::optional<StartReport> read_report(const Fd& report);

// Why a program did not start: the exit status of `parc run` and a sentence.
struct StartFailure {
  int status;
  std::string text;
};
[[nodiscard]] StartFailure explain(const Program& program, const StartReport& report,
                                   const std::string& host);

} // namespace parc::daemon
