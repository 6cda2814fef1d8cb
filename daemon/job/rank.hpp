// SPDX-License-Identifier: BSD-3-Clause
// One process of a job on this host: its start, its output, its end. Its part of the job (JobPart) hears of
// each.
//
// Output is read only with credit, so that no more than that lies between the rank and the terminal of
// `parc run`; a rank that writes on waits in its pipe. Invariants: the process is reaped by its pidfd alone,
// after everything else in its process group was killed, so a group's number is never used for a later one;
// nothing that was written before the process died is lost.
#pragma once

#include "daemon/base/event.hpp"
#include "daemon/job/rank_input.hpp"
#include "daemon/process/start_process.hpp"

#include <algorithm>
#include <array>
#include <csignal>
#include <cstdint>
#include <optional>
#include <set>

namespace parc::daemon {

class JobPart;

// Behind that a rank was killed, where it may be why.
inline constexpr const char* no_memory = ": the system ended a process there for want of memory";

// They end nobody: neither is how a job ended.
inline bool only_stops(int signal) {
  return signal == SIGSTOP || signal == SIGCONT;
}

class Rank {
public:
  Rank(JobPart& part, event_base* loop, const Processes& processes, std::uint32_t number,
       StartedProcess& process, std::uint64_t credit);
  Rank(const Rank&) = delete;
  Rank& operator=(const Rank&) = delete;
  ~Rank(); // kills what lives

  [[nodiscard]] std::uint32_t number() const { return number_; }
  [[nodiscard]] pid_t id() const { return id_; } // of its process, as long as it is alive
  [[nodiscard]] bool alive() const { return static_cast<bool>(process_); }
  [[nodiscard]] bool ended() const {
    return !alive() && std::ranges::none_of(outputs_, [](const OutputPipe& each) { return bool(each.pipe); });
  }

  [[nodiscard]] RankInput* input() { return input_ ? &*input_ : nullptr; }
  void signal(int number);              // the whole process group
  void add_credit(std::uint64_t bytes); // its output was taken
  void discard_output();                // nobody is left to take it

  bool departed = false; // its session has ended: it is on its way out
  bool ordered = false;  // was told to end, because its job does

private:
  struct OutputPipe {
    Fd pipe;
    Event readable;
  };
  void read_start_report();
  void process_ended();
  void read_output(std::size_t stream);
  void drain();
  void close(OutputPipe& output);
  void end_if_over();

  JobPart& part_;
  const Processes& processes_;
  std::uint32_t number_;
  pid_t id_;
  const std::uint64_t most_credit_;
  std::uint64_t credit_;
  bool discards_ = false;
  bool over_told_ = false; // its part knows that it has ended
  Fd process_;
  Fd report_;
  Event ended_;
  Event reported_;
  std::set<int> early_;               // signals that wait until the program runs
  std::optional<RankInput> input_;    // where it reads what `parc run` does
  std::array<OutputPipe, 3> outputs_; // stdout, stderr, trace
};

} // namespace parc::daemon
