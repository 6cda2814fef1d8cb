// SPDX-License-Identifier: BSD-3-Clause
// The event loop that all actors of a kernel share: events of descriptors, the time and its timers, actions
// put off to the end of a step, and where errors are made known. An actor that another one asks for
// something, or tells something, does not act inside that one's call: it, or who calls, leaves an action
// here.
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

  // `time`: the clock of a simulation, whose timers ring when it calls ring(). None: the system's clock, and
  // timers ring from the event base.
  explicit Loop(const Time* time = nullptr);
  Loop(const Loop&) = delete;
  Loop& operator=(const Loop&) = delete;

  [[nodiscard]] event_base* events() const { return events_.get(); }

  // The time, for link/, program/ and job/, which never ask the system. Not called in turns that only move
  // bytes.
  [[nodiscard]] Time now() const { return time_ == nullptr ? Clock::now() : *time_; }
  [[nodiscard]] std::optional<Time> next_timer() const; // when the first one is due; none: none is set
  void ring();                                          // runs the actions of timers that are due

  // Does `action` when the current step of the turn has returned.
  void after_step(std::function<void()> action) { actions_.push_back(std::move(action)); }
  [[nodiscard]] bool any_actions() const { return !actions_.empty(); }
  // Runs all actions, those that they leave behind them too, and returns how many there were.
  std::uint64_t end_step();
  void forget_actions() { actions_.clear(); } // before the objects go that actions refer to

  [[nodiscard]] Errors& errors() { return known_errors_; }

private:
  friend class Timer;
  using Due = std::pair<Time, std::uint64_t>; // and a number, which orders timers of one time
  void arm();

  EventBase events_;
  const Time* time_;
  std::map<Due, Timer*> timers_;
  std::uint64_t timers_set_ = 0;
  Event alarm_;    // fires when the first timer is due
  Time armed_for_; // Time::min(): it is not armed
  std::vector<std::function<void()>> actions_;
  Errors known_errors_;
};

// A timer, whose action runs once, so long after it was set. The action may set or cancel it, and must not
// destroy it.
class Timer {
public:
  Timer(Loop& loop, std::function<void()> action) : loop_(loop), action_(std::move(action)) {}
  Timer(const Timer&) = delete;
  Timer& operator=(const Timer&) = delete;
  ~Timer() { cancel(); }

  void set(double seconds); // from now on, in place of an earlier time
  void cancel();
  [[nodiscard]] bool is_set() const { return due_.has_value(); }

private:
  friend class Loop;
  Loop& loop_;
  std::function<void()> action_;
  std::optional<Loop::Due> due_; // none: it is not set
};

} // namespace parc::daemon
