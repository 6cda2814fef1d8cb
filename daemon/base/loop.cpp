// SPDX-License-Identifier: BSD-3-Clause
#include "daemon/base/loop.hpp"

#include <algorithm>

namespace parc::daemon {
namespace {

// One thread, and timers that need no better than epoll's millisecond: no locks, no timerfd.
EventBase make_events() {
  const std::unique_ptr<event_config, void (*)(event_config*)> config(event_config_new(), event_config_free);
  event_config_set_flag(config.get(), EVENT_BASE_FLAG_NOLOCK);
  event_config_require_features(config.get(), EV_FEATURE_ET);
  return EventBase(event_base_new_with_config(config.get()));
}

} // namespace

Loop::Loop(const Time* time)
    : events_(make_events()), time_(time), alarm_(Event::timer(events(), [this](short) { ring(); })),
      armed_for_(Time::min()) {}

std::uint64_t Loop::end_step() {
  std::uint64_t done = 0;
  while (!actions_.empty()) {
    std::vector<std::function<void()>> actions;
    actions.swap(actions_);
    for (const auto& action : actions) action();
    done += actions.size();
  }
  return done;
}

std::optional<Loop::Time> Loop::next_timer() const {
  return timers_.empty() ? std::nullopt : std::optional(timers_.begin()->first.first);
}

// The event base's clock is coarser: when it says that the alarm's time has come, it has.
void Loop::ring() {
  const Time until = std::max(now(), std::exchange(armed_for_, Time::min()));
  const std::uint64_t last = timers_set_;
  while (!timers_.empty()) {
    const auto [due, timer] = *timers_.begin();
    if (due.first > until || due.second > last) break;
    timers_.erase(timers_.begin());
    timer->due_.reset();
    timer->action_();
  }
  arm();
}

void Loop::arm() {
  const Time next = timers_.empty() ? Time::min() : timers_.begin()->first.first;
  if (time_ != nullptr || next == armed_for_) return;
  armed_for_ = next;
  if (timers_.empty()) return alarm_.remove();
  alarm_.add(std::max(0.0, std::chrono::duration<double>(next - now()).count()));
}

void Timer::set(double seconds) {
  if (due_) loop_.timers_.erase(*due_);
  const auto wait = std::chrono::duration_cast<Loop::Clock::duration>(std::chrono::duration<double>(seconds));
  due_ = {loop_.now() + wait, ++loop_.timers_set_};
  loop_.timers_.emplace(*due_, this);
  loop_.arm();
}

void Timer::cancel() {
  if (!due_) return;
  loop_.timers_.erase(*due_);
  due_.reset();
  loop_.arm();
}

} // namespace parc::daemon
