// SPDX-License-Identifier: BSD-3-Clause
#include "daemon/base/copy_cost.hpp"

#include <algorithm>
#include <chrono>
#include <cstring>
#include <sys/uio.h>
#include <unistd.h>
#include <vector>

namespace parc::daemon {
namespace {

using Clock = std::chrono::steady_clock;
constexpr std::size_t sample = std::size_t{1} << 20;

template <class Copy> Clock::duration best_of(const Copy& copy) {
  auto best = Clock::duration::max();
  for (int i = 0; i < 5; ++i) {
    const auto begin = Clock::now();
    copy();
    best = std::min(best, Clock::now() - begin);
  }
  return best;
}

struct Sample {
  std::vector<char> from = std::vector<char>(sample, 1), to = std::vector<char>(sample, 2);

  Clock::duration memory_copy() {
    return best_of([this] {
      std::memcpy(to.data(), from.data(), sample);
      asm volatile("" : : "r"(to.data()) : "memory");
    });
  }
  // The longest there is where the system refuses it.
  Clock::duration cross_copy() {
    const iovec here{to.data(), sample}, there{from.data(), sample};
    bool copied = true;
    const auto best = best_of([&] {
      copied = copied && process_vm_readv(getpid(), &here, 1, &there, 1, 0) == static_cast<ssize_t>(sample);
    });
    return copied ? best : Clock::duration::max();
  }
};

} // namespace

std::uint32_t copy_ns_per_kib() {
  const auto ns = std::chrono::nanoseconds(Sample().memory_copy()).count();
  return static_cast<std::uint32_t>(ns / static_cast<std::int64_t>(sample / 1024) + 1);
}

bool cross_copies_pay() {
  Sample sample;
  return sample.cross_copy() / 3 <= sample.memory_copy() / 2;
}

} // namespace parc::daemon
