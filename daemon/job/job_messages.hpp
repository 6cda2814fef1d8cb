// SPDX-License-Identifier: BSD-3-Clause
// What the kernels of a job say to each other: the kernel that `parc run` talks to (the origin) and those
// that run its ranks (parts), which may be the same. Each message is an object with "kind" and "job".
//
//   origin            part
//   prepare    ->                      the whole plan; it connects to the other hosts of the job
//              <-     prepared         there are endpoints for its ranks: the first one's number
//   start      ->                      when all are prepared: those of each host
//              <-     failed           prepare or start did not work: exit status and sentence
//              <-     output           of a rank, as far as its credit goes
//   taken      ->                      credit back
//   input      ->                      what its ranks read, and whether more follows ("end")
//              <-     input_taken      so much of that, so far, by the slowest of them
//              <-     departed         a rank's session has ended; "known": news of who of other hosts has
//              <-     exited, ended    its process; and then also its output
//              <-     abort            parc_abort, with its status
//              <-     parted           two hosts of the job have lost their link
//              <-     stopping         that kernel shuts down
//              <-     started          all its ranks run (of a job that was spawned)
//              <-     spawn            one of its ranks wants another job (daemon/spawn/spawners.hpp)
//   signal     ->                      for every rank, or one
//   end, kill  ->                      the ranks are to end: SIGTERM and soon SIGKILL; SIGKILL
//   finish     ->                      the job is over: forget it
//
// Any kernel of a job asks any other for `parc dump` (daemon/tool/job_dump.hpp): "look", answered by "seen",
// which carry the asker's token in place of the job's origin. So do "question" and "answer", between any two
// (daemon/tool/host_search.hpp). "kill_job" goes from any kernel of a job to its origin.
#pragma once

#include "jobs/placement.hpp"

#include <algorithm>
#include <csignal>
#include <cstdint>

namespace parc::daemon {

// Behind that a rank was killed, where it may be why.
inline constexpr const char* no_memory = ": the system ended a process there for want of memory";
// With "ended": how many messages the ranks of that host had not read when they left, and so many of them.
inline constexpr std::uint64_t unread_told = 5;

// Unacknowledged output of a rank between its pipe and the tool. All ranks together may fill 8 MiB, more only
// where that is less than 1 KiB for each.
inline std::uint64_t output_credit(std::uint32_t ranks) {
  constexpr std::uint64_t least = 1024, most = 256 << 10, together = 8 << 20;
  return std::clamp<std::uint64_t>(together / std::max(ranks, 1u), least, most);
}

// They end nobody: neither is how a job ended.
inline bool only_stops(int signal) {
  return signal == SIGSTOP || signal == SIGCONT;
}

// Patience with a kernel that is asked for a tool.
inline constexpr double answers_within_s = 3;

// What the tool has read for the ranks and they have not.
inline constexpr std::uint64_t input_window = 256 << 10;

} // namespace parc::daemon
