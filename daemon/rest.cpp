// SPDX-License-Identifier: BSD-3-Clause
#include "daemon/rest.hpp"

#include <sched.h>

namespace parc::daemon {
namespace {

using namespace std::chrono_literals;
constexpr auto uninterrupted = 4ms; // of real-time work, before it gives way once
constexpr auto slow_yield = 100us;  // a sched_yield that takes longer means that the core computes
constexpr std::uint32_t no_polling_rests = 64;

} // namespace

Rest::Rest(event_base* base, SchedulingClass& scheduling, std::chrono::microseconds spin, Hooks hooks)
    : base_(base), scheduling_(scheduling), spin_(spin), hooks_(std::move(hooks)) {}

void Rest::after(std::uint64_t work) {
  ++counters_.turns;
  if (work != 0) {
    idle_ = false;
    give_way();
    look();
    return;
  }
  if (no_polling_ == 0 && hooks_.spinning()) {
    const auto now = Clock::now();
    if (!idle_) idle_since_ = now;
    idle_ = true;
    if (now - idle_since_ < spin_) {
      poll(now);
      return;
    }
  }
  sleep();
}

void Rest::poll(Clock::time_point now) {
  ++counters_.polls;
  scheduling_.leave_realtime();
  sched_yield();
  if (Clock::now() - now > slow_yield) no_polling_ = no_polling_rests;
  look();
}

// Somebody else on this core has waited for some milliseconds: let it run once.
void Rest::give_way() {
  if (!scheduling_.in_realtime() || Clock::now() - realtime_since_ < uninterrupted) return;
  ++counters_.gave_way;
  scheduling_.leave_realtime();
  sched_yield();
  scheduling_.enter_realtime();
  realtime_since_ = Clock::now();
}

void Rest::look() {
  event_base_loop(base_, EVLOOP_NONBLOCK);
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
  scheduling_.enter_realtime();
  event_base_loop(base_, EVLOOP_ONCE);
  realtime_since_ = Clock::now();
  hooks_.announce_awake();
}

} // namespace parc::daemon
