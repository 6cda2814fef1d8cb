// SPDX-License-Identifier: BSD-3-Clause
#include "daemon/rest.hpp"

#include <sched.h>
#include <utility>

namespace parc::daemon {
namespace {

using namespace std::chrono_literals;
constexpr auto uninterrupted = 4ms; // of real-time work, before it gives way once
constexpr auto slow_yield = 400us;  // a sched_yield that takes longer means that the core computes: slices are longer
constexpr std::uint32_t no_polling_rests = 64;
// Looks between two yields to a program that polls. It waits for what these looks may find, and a yield takes
// as long as several of them.
constexpr std::uint32_t looks_a_yield = 8;
constexpr auto between_calls = 10us; // of a program that polled and will again

} // namespace

Rest::Rest(event_base* base, SchedulingClass& scheduling, std::chrono::microseconds spin, Hooks hooks)
    : base_(base), scheduling_(scheduling), spin_(spin), hooks_(std::move(hooks)) {}

void Rest::after(std::uint64_t work) {
  ++counters_.turns;
  if (work != 0) {
    idle_ = false;
    give_way();
    look();
  } else if (no_polling_ == 0 && poll()) {
    look();
  } else {
    sleep();
  }
}

// False when it is time to sleep.
bool Rest::poll() {
  const auto now = Clock::now();
  if (!std::exchange(idle_, true)) idle_since_ = now;
  if (now - idle_since_ >= spin_) return false;
  ++counters_.polls;
  if (hooks_.spinning()) {
    spun_ = now;
    scheduling_.enter_polling();
    if (std::exchange(told_, false) || ++looks_ % looks_a_yield == 0) yield(now);
    return true;
  }
  // It was told something and runs on another core, or is not run: the core is not given up to whoever
  // calculates.
  return now - spun_ < spin_ && now - idle_since_ < between_calls;
}

void Rest::yield(Clock::time_point now) {
  sched_yield();
  if (Clock::now() - now > slow_yield) no_polling_ = no_polling_rests;
}

// Somebody else on this core has waited for some milliseconds: let it run once.
void Rest::give_way() {
  if (!scheduling_.in_realtime() || Clock::now() - realtime_since_ < uninterrupted) return;
  ++counters_.gave_way;
  scheduling_.enter_polling();
  sched_yield();
  scheduling_.enter_reacting();
  realtime_since_ = Clock::now();
}

void Rest::look() {
  // Without ONCE libevent asks epoll again after every event.
  event_base_loop(base_, EVLOOP_NONBLOCK | EVLOOP_ONCE);
}

void Rest::sleep() {
  idle_ = false;
  hooks_.announce_sleep();
  if (hooks_.ready()) {
    hooks_.announce_awake();
    look();
    return;
  }
  ++counters_.sleeps;
  if (no_polling_ != 0) --no_polling_;
  scheduling_.enter_reacting();
  event_base_loop(base_, EVLOOP_ONCE);
  realtime_since_ = Clock::now();
  hooks_.announce_awake();
}

} // namespace parc::daemon
