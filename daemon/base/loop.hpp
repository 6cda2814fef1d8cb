// SPDX-License-Identifier: BSD-3-Clause
// What everything in a kernel is a guest of: the events of descriptors, the time and its timers, what waits
// for the end of a step, and where errors are made known. An actor that another one asks for something, or
// tells something, does not act inside that one's call: it, or who calls, leaves an action here.
//
// Invariants: actions are done in the order in which they were left, those that they leave behind them, too.
// Timers ring in the order of their times, those of one time in the order in which they were set, and one
// that is set meanwhile not before the loop has gone round.
#pragma once

#include "daemon/base/errors.hpp"
#include "daemon/base/event.hpp"

#include <chrono>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <utility>
#include <vector>

namespace parc::daemon {

class Timer;

class Loop {
public:
  using Clock = std::chrono::steady_clock;
  using Time = Clock::time_point;

  // `time`: what it is, as who simulates says; timers ring when it calls ring(). None: the system's clock,
  // and they ring from the event base.
  explicit Loop(const Time* time = nullptr);
  Loop(const Loop&) = delete;
  Loop& operator=(const Loop&) = delete;

  [[nodiscard]] event_base* events() const { return events_.get(); }

  // Nobody in link/, program/ and job/ asks the system for the time. No call in a turn that only moves bytes.
  [[nodiscard]] Time now() const { return time_ == nullptr ? Clock::now() : *time_; }
  [[nodiscard]] std::optional<Time> next_timer() const; // when it is due
  void ring();                                          // the timers that are

  // Does `action` when the current step of the turn has returned.
  void after_step(std::function<void()> action) { actions_.push_back(std::move(action)); }
  [[nodiscard]] bool any_actions() const { return !actions_.empty(); }
  // Returns how many there were.
  std::uint64_t end_step();
  void forget_actions() { actions_.clear(); } // before those go that they refer to

  [[nodiscard]] Errors& errors() { return known_errors_; }

private:
  friend class Timer;
  using Due = std::pair<Time, std::uint64_t>; // and which one of those due then
  void arm();

  EventBase events_;
  const Time* time_;
  std::map<Due, Timer*> timers_;
  std::uint64_t timers_set_ = 0;
  Event alarm_;    // at the first one's time
  Time armed_for_; // Time::min(): it is not armed
  std::vector<std::function<void()>> actions_;
  Errors known_errors_;
};

// Does something once, so long after it was set. May be set and canceled in its action, and not go in it.
class Timer {
public:
  Timer(Loop& loop, std::function<void()> action) : loop_(loop), action_(std::move(action)) {}
  Timer(const Timer&) = delete;
  Timer& operator=(const Timer&) = delete;
  ~Timer() { cancel(); }

  void set(double seconds); // from now on; one that is set already is moved
  void cancel();

private:
  friend class Loop;
  Loop& loop_;
  std::function<void()> action_;
  std::optional<Loop::Due> due_; // none: it is not set
};

} // namespace parc::daemon
