// SPDX-License-Identifier: BSD-3-Clause
// What the kernel does when a turn found nothing: polls for a bounded time while a program of its host spins,
// then sleeps until something comes. Policy is here and nowhere else.
//
// Rules, each measured: while a program polls, the kernel polls in the normal scheduling class, with yields,
// and works in that class what polling found; while one asks for one thing after the other it naps, so that
// the next look finds many: a bell for each would take that program's core for each; otherwise it lingers for
// a few microseconds without giving up the core, where that has paid lately, and no thread of a program has
// been asked for something, which may wait for that core; it goes back to real time only before it blocks;
// after some milliseconds of uninterrupted real-time work it gives way once; a sched_yield that takes long
// means that the core computes, and polling is left out for a while.
#pragma once

#include "daemon/base/event.hpp"
#include "system/scheduling.hpp"

#include <chrono>
#include <cstdint>
#include <functional>

namespace parc::daemon {

class IdlePolicy {
public:
  struct Needs {
    std::function<bool()> spinning;       // a program of this host polls
    std::function<bool()> bursts;         // a program asks for one thing after the other
    std::function<bool()> asks;           // a thread of one is to answer
    std::function<bool()> ready;          // there is work that no descriptor announces (requests, copies)
    std::function<void()> announce_sleep; // before the last look at ready()
    std::function<void()> announce_awake;
  };
  struct Counters {
    std::uint64_t turns = 0, polls = 0, naps = 0, sleeps = 0, gave_way = 0;
  };

  IdlePolicy(event_base* base, SchedulingClass& scheduling, std::chrono::microseconds spin, Needs needs);

  // Called after every turn with the work it did: looks at the descriptors, and blocks when nothing moves.
  void after(std::uint64_t work);
  // A program learned of something: while it polls it gets the core before the kernel looks again.
  void told() { told_ = true; }
  [[nodiscard]] const Counters& counters() const { return counters_; }

private:
  using Clock = std::chrono::steady_clock;
  [[nodiscard]] bool poll();
  void yield(Clock::time_point now);
  void give_way();
  [[nodiscard]] bool nap(); // false: the one before found nothing
  void look();              // runs the callbacks of ready descriptors, without waiting
  void sleep();             // blocks until one is ready

  event_base* base_;
  SchedulingClass& scheduling_;
  std::chrono::microseconds spin_;
  Needs needs_;
  Clock::time_point idle_since_{};
  Clock::time_point realtime_since_{};
  bool idle_ = false;
  bool told_ = false;
  bool lingers_ = false;
  std::uint32_t looks_ = 0;
  std::uint32_t without_polling_ = 0; // rests for which polling is left out
  std::uint32_t without_lingering_ = 0;
  bool napped_ = false;
  std::uint32_t without_naps_ = 0; // rests for which they are left out
  std::uint32_t missed_naps_ = 1;  // rests without one after it found nothing; doubles
  std::uint32_t missed_ = 1;       // rests without lingering after it found nothing; doubles
  Counters counters_;
};

} // namespace parc::daemon
