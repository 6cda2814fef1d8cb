// SPDX-License-Identifier: BSD-3-Clause
// libevent's objects with owners.
#pragma once

#include <event2/event.h>
#include <functional>
#include <memory>
#include <sys/time.h>
#include <utility>

namespace parc::daemon {

struct EventBaseFree {
  void operator()(event_base* base) const { event_base_free(base); }
};
using EventBase = std::unique_ptr<event_base, EventBaseFree>;

// One watched descriptor, signal or timer. Stops watching when it goes.
class Event {
public:
  using Action = std::function<void(short what)>;

  Event() = default;
  Event(event_base* base, int fd, short what, Action action)
      : action_(std::make_unique<Action>(std::move(action))),
        event_(event_new(
            base, fd, what, [](int, short happened, void* self) { (*static_cast<Action*>(self))(happened); },
            action_.get())) {}

  static Event timer(event_base* base, Action action) { return {base, -1, 0, std::move(action)}; }

  void add() { event_add(event_.get(), nullptr); }
  void add(double seconds) {
    const timeval time{
        static_cast<time_t>(seconds),
        static_cast<suseconds_t>((seconds - static_cast<double>(static_cast<time_t>(seconds))) * 1e6)};
    event_add(event_.get(), &time);
  }
  void remove() { event_del(event_.get()); }
  explicit operator bool() const { return event_ != nullptr; }

private:
  struct Free {
    void operator()(event* e) const { event_free(e); }
  };
  std::unique_ptr<Action> action_; // at an address of its own: the event points to it
  std::unique_ptr<event, Free> event_;
};

} // namespace parc::daemon
