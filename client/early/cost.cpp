// SPDX-License-Identifier: BSD-3-Clause
#include "client/early/cost.hpp"

#include "client/base/pages.hpp"
#include "client/early/fault.hpp"

#include <algorithm>
#include <sys/mman.h>

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
  return {.fixed = guard_one_and_touch, .per_page = guard_all / many};
}

} // namespace parc::client
