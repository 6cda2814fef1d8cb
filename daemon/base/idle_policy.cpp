// SPDX-License-Identifier: BSD-3-Clause
#include "daemon/base/idle_policy.hpp"

#include <algorithm>
#include <sched.h>
#include <utility>

namespace parc::daemon {
namespace {

using namespace std::chrono_literals;
constexpr auto uninterrupted = 4ms; // of real-time work, before it gives way once
constexpr auto slow_yield =
    400us; // a sched_yield that takes longer means that the core computes: slices are longer
constexpr std::uint32_t rests_without_polling = 64;
// Looks between two yields to a program that polls. It waits for what these looks may find, and a yield takes
// as long as several of them.
constexpr std::uint32_t looks_a_yield = 8;
// Shorter than a sleep and a wake. It pays on a link that brings the next bytes by then, and while a program
// goes from one call to the next; where it does not, it is left out for up to so many rests.
constexpr auto linger_time = 50us;
constexpr std::uint32_t most_missed = 64;
// What is asked for first goes at once; what comes behind it in such a time goes together.
constexpr timespec nap_time{0, 20'000};

} // namespace

IdlePolicy::IdlePolicy(event_base* base, SchedulingClass& scheduling, std::chrono::microseconds spin,
                       Needs needs)
    : base_(base), scheduling_(scheduling), spin_(spin), needs_(std::move(needs)) {}

void IdlePolicy::after(std::uint64_t work) {
  ++counters_.turns;
  if (work != 0) {
    if (std::exchange(napped_, false)) missed_naps_ = 1;
    if (lingers_) missed_ = 1;
    idle_ = lingers_ = false;
    give_way();
    look();
  } else if (poll()) {
    look();
  } else {
    sleep();
  }
}

// False when it is time to sleep.
bool IdlePolicy::poll() {
  const auto now = Clock::now();
  if (!std::exchange(idle_, true)) idle_since_ = now;
  if (without_polling_ == 0 && now - idle_since_ < spin_ && needs_.spinning()) {
    ++counters_.polls;
    scheduling_.enter_polling();
    if (std::exchange(told_, false) || ++looks_ % looks_a_yield == 0) yield(now);
    return true;
  }
  if (napped_ || (without_naps_ == 0 && needs_.bursts())) return nap();
  if (without_lingering_ != 0 || needs_.asks()) return lingers_ = false;
  if (now - idle_since_ < linger_time) return lingers_ = true;
  if (std::exchange(lingers_, false)) {
    without_lingering_ = missed_;
    missed_ = std::min(missed_ * 2, most_missed);
  }
  return false;
}

bool IdlePolicy::nap() {
  if (std::exchange(napped_, false)) {
    without_naps_ = missed_naps_;
    missed_naps_ = std::min(missed_naps_ * 2, most_missed);
    return false;
  }
  napped_ = true;
  ++counters_.naps;
  scheduling_.enter_reacting();
  clock_nanosleep(CLOCK_MONOTONIC, 0, &nap_time, nullptr);
  return true;
}

void IdlePolicy::yield(Clock::time_point now) {
  sched_yield();
  if (Clock::now() - now > slow_yield) without_polling_ = rests_without_polling;
}

// Somebody else on this core has waited for some milliseconds: let it run once.
void IdlePolicy::give_way() {
  if (!scheduling_.in_realtime() || Clock::now() - realtime_since_ < uninterrupted) return;
  ++counters_.gave_way;
  scheduling_.enter_polling();
  sched_yield();
  scheduling_.enter_reacting();
  realtime_since_ = Clock::now();
}

void IdlePolicy::look() {
  // Without ONCE libevent asks epoll again after every event.
  event_base_loop(base_, EVLOOP_NONBLOCK | EVLOOP_ONCE);
}

void IdlePolicy::sleep() {
  idle_ = lingers_ = false;
  needs_.announce_sleep();
  if (needs_.ready()) {
    needs_.announce_awake();
    look();
    return;
  }
  ++counters_.sleeps;
  if (without_polling_ != 0) --without_polling_;
  if (without_lingering_ != 0) --without_lingering_;
  if (without_naps_ != 0) --without_naps_;
  scheduling_.enter_reacting();
  event_base_loop(base_, EVLOOP_ONCE);
  realtime_since_ = Clock::now();
  needs_.announce_awake();
}

} // namespace parc::daemon
