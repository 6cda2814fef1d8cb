// SPDX-License-Identifier: BSD-3-Clause
#include "client/early/cost.hpp"

#include "client/base/pages.hpp"
#include "client/early/fault.hpp"
#include "client/session/pipes.hpp"
#include "system/fd.hpp"

#include <algorithm>
#include <sys/mman.h>
#include <sys/timerfd.h>
#include <unistd.h>

namespace parc::client {
namespace {

using Clock = std::chrono::steady_clock;

constexpr int repeats = 5; // the shortest is what it costs
constexpr std::size_t many = 64;

template <class Work> std::chrono::nanoseconds shortest(const Work& work) {
  auto best = Clock::duration::max();
  for (int i = 0; i < repeats; ++i) {
    const auto begin = Clock::now();
    work();
    best = std::min(best, Clock::now() - begin);
  }
  return best;
}

// How long behind its time a thread is back that a timer wakes: threads of others could not be had for less.
std::chrono::nanoseconds measure_wake() {
  constexpr auto rest = std::chrono::microseconds(50);
  const Fd timer(timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC));
  auto best = Clock::duration::max();
  for (int i = 0; timer && i < repeats; ++i) {
    const auto end = Clock::now() + rest;
    const itimerspec when{.it_interval = {}, .it_value = to_timespec(end.time_since_epoch())};
    std::uint64_t times = 0;
    if (timerfd_settime(timer.get(), TFD_TIMER_ABSTIME, &when, nullptr) == 0 &&
        read(timer.get(), &times, sizeof times) == sizeof times)
      best = std::min(best, Clock::now() - end);
  }
  return best == Clock::duration::max() ? Clock::duration::zero() : best;
}

} // namespace

GuardCost measure_guard_cost() {
  const std::size_t bytes = many * page_size();
  // As segments are.
  void* const base = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  if (base == MAP_FAILED) return {};
  auto* const memory = static_cast<volatile char*>(base);
  for (std::size_t page = 0; page < many; ++page) memory[page * page_size()] = 1;
  const auto guard_all = shortest([&] {
    (void)mprotect(base, bytes, PROT_NONE);
    (void)mprotect(base, bytes, PROT_READ | PROT_WRITE);
    // Where pages of a virtual machine are looked up anew, that costs more than the calls.
    for (std::size_t page = 0; page < many; ++page) (void)memory[page * page_size()];
  });
  const auto guard_one_and_touch = shortest([&] {
    (void)mprotect(base, page_size(), PROT_NONE);
    open_when_touched(base); // as a guard does
    memory[0] = 2;
  });
  munmap(base, bytes);
  return {.fixed = guard_one_and_touch, .per_page = guard_all / many, .wake = measure_wake()};
}

} // namespace parc::client
