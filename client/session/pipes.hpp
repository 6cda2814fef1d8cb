// SPDX-License-Identifier: BSD-3-Clause
// The two pipes of a session after the first messages: doorbells both ways, and the kernel's end as the
// program sees it. Invariant: gone() stays true once it is; nothing here blocks but sleep() and pause().
// Threads: ring, look, gone from any; sleep and pause as said there.
#pragma once

#include "system/fd.hpp"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <optional>

namespace parc::client {

using Clock = std::chrono::steady_clock;
using Limit = std::optional<Clock::time_point>; // of a wait; none: for ever

inline timespec to_timespec(Clock::duration time) {
  const auto seconds = std::chrono::duration_cast<std::chrono::seconds>(time);
  return {seconds.count(), std::chrono::nanoseconds(time - seconds).count()};
}

class Pipes {
public:
  Pipes(Fd from_kernel, Fd to_kernel);

  // The kernel of this host has gone, or has ended this session.
  [[nodiscard]] bool gone() const { return gone_.load(std::memory_order_acquire); }

  // Wakes the kernel: the call after must_ring(kernel_asleep).
  void ring();

  // Sleeps until the kernel rings or goes, this program rings (an eventfd; -1: there is none), a signal
  // handler has run, or the limit; takes the bells. One thread at a time.
  void sleep(Limit limit, int own_bell);

  // Takes the bells off the pipe, or finds that the kernel has gone. Not while a thread sleeps.
  void drain();
  [[nodiscard]] int kernels() const { return from_kernel_.get(); } // for a program to poll

  // Sleeps for a millisecond, or less if the kernel goes; leaves bells alone.
  void pause();

  // Asks the system whether the kernel is still there. Async-signal-safe.
  bool look();

  // In a forked child: the parent's pipes are none of its business. Async-signal-safe.
  void close_in_child();

private:
  Fd from_kernel_, to_kernel_;
  std::atomic<bool> gone_ = false;
};

} // namespace parc::client
