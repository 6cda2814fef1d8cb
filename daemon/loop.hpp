// SPDX-License-Identifier: BSD-3-Clause
// What everything in a kernel is a guest of: the events of descriptors and timers, and what waits for the end
// of a step. An actor that another one asks for something, or tells something, does not act inside that one's
// call: it, or who calls, leaves an action here.
//
// Invariant: actions are done in the order in which they were left, those that they leave behind them, too.
#pragma once

#include "daemon/event.hpp"

#include <cstdint>
#include <functional>
#include <utility>
#include <vector>

namespace parc::daemon {

class Loop {
public:
  Loop() : events_(make_events()) {}
  Loop(const Loop&) = delete;
  Loop& operator=(const Loop&) = delete;

  [[nodiscard]] event_base* events() const { return events_.get(); }

  // Does `action` when the current step of the turn has returned.
  void after_step(std::function<void()> action) { actions_.push_back(std::move(action)); }
  [[nodiscard]] bool any_actions() const { return !actions_.empty(); }
  // Returns how many there were.
  std::uint64_t end_step() {
    std::uint64_t done = 0;
    while (!actions_.empty()) {
      std::vector<std::function<void()>> actions;
      actions.swap(actions_);
      for (const auto& action : actions) action();
      done += actions.size();
    }
    return done;
  }
  void forget_actions() { actions_.clear(); } // before those go that they refer to

private:
  // One thread, and timers that need no better than epoll's millisecond: no locks, no timerfd.
  static EventBase make_events() {
    const std::unique_ptr<event_config, void (*)(event_config*)> config(event_config_new(),
                                                                        event_config_free);
    event_config_set_flag(config.get(), EVENT_BASE_FLAG_NOLOCK);
    event_config_require_features(config.get(), EV_FEATURE_ET);
    return EventBase(event_base_new_with_config(config.get()));
  }

  EventBase events_;
  std::vector<std::function<void()>> actions_;
};

} // namespace parc::daemon
