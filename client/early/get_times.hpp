// SPDX-License-Identifier: BSD-3-Clause
// How long gets have taken at the least, by their peer and size: so long a wait for one rests (HUNT 2005,
// section 5.1: a transfer that is over before its guards have paid is waited for). Threads: any.
#pragma once

#include <array>
#include <atomic>
#include <bit>
#include <chrono>
#include <cstdint>

namespace parc::client {

class GetTimes {
public:
  using Time = std::chrono::nanoseconds;

  void note(int peer, std::uint64_t bytes, Time took) {
    std::atomic<std::int64_t>& least = of(peer, bytes);
    std::int64_t known = least.load(std::memory_order_relaxed);
    while ((known == 0 || took.count() < known) &&
           !least.compare_exchange_weak(known, took.count(), std::memory_order_relaxed)) {
    }
  }
  // Of one of that size, or down to half of it; 0: there has been none.
  [[nodiscard]] Time least(int peer, std::uint64_t bytes) {
    return Time(of(peer, bytes).load(std::memory_order_relaxed));
  }

private:
  static constexpr std::size_t peers = 16; // where there are more, some share a place

  [[nodiscard]] std::atomic<std::int64_t>& of(int peer, std::uint64_t bytes) {
    return least_[static_cast<unsigned>(peer) % peers][static_cast<std::size_t>(std::bit_width(bytes))];
  }
  std::array<std::array<std::atomic<std::int64_t>, 65>, peers> least_{};
};

} // namespace parc::client
