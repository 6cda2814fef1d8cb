// SPDX-License-Identifier: BSD-3-Clause
// What stands in this program until somebody else goes on: messages to neighbours that no cell is free for,
// messages of theirs that no read has taken, and operations that the caller starts later (parc_set_put_off).
// It is counted for onlookers. Where what is to go on has not done so for long, a line on stderr says that,
// once: whoever is in a call looks, and who sleeps wakes up to look.
//
// Threads: any; what is counted of messages has one writer at a time. Async-signal-safe.
#pragma once

#include "client/session/pipes.hpp"
#include "shm/layout.hpp"
#include "system/coarse_clock.hpp"

#include <algorithm>

namespace parc::client {

class Backlog {
public:
  static constexpr std::uint32_t long_ms = 10'000;

  explicit Backlog(shm::BacklogCounters& counters) : counters_(counters) {}

  void waits_for_cell(std::uint64_t bytes) {
    shm::count(counters_.to_neighbours);
    shm::count(counters_.to_neighbours_bytes, bytes);
  }
  void waits_no_more(std::uint64_t bytes) {
    shm::count(counters_.to_neighbours, -one);
    shm::count(counters_.to_neighbours_bytes, -bytes);
  }
  void stored(std::uint64_t bytes) {
    shm::count(counters_.from_neighbours);
    shm::count(counters_.from_neighbours_bytes, bytes);
  }
  void stored_no_more(std::uint64_t bytes) {
    shm::count(counters_.from_neighbours, -one);
    shm::count(counters_.from_neighbours_bytes, -bytes);
  }
  // Of so many operations the oldest is for this peer; below 0: for anybody.
  void put_off(std::uint64_t operations, int peer);

  // Something has stood for so long that it is to be said; never again when it has been.
  [[nodiscard]] bool is_long(std::uint32_t since) const {
    return !said_.load(std::memory_order_relaxed) && coarse_ms() - since >= long_ms;
  }
  void say_waiting(int peer, std::uint64_t messages, std::uint64_t bytes);
  void look() {
    if (counters_.put_off.load(std::memory_order_relaxed) != 0 &&
        is_long(put_off_since_.load(std::memory_order_relaxed)))
      say_put_off();
  }
  // Who sleeps until then looks in time.
  [[nodiscard]] Limit within(Limit limit) const {
    if (said_.load(std::memory_order_relaxed) || !anything()) return limit;
    const auto next = Clock::now() + std::chrono::milliseconds(long_ms + tick_ms);
    return limit ? std::min(*limit, next) : next;
  }

private:
  static constexpr std::uint64_t one = 1;
  static constexpr std::uint32_t tick_ms = 100; // more than coarse_ms() may be late
  [[nodiscard]] bool anything() const {
    return counters_.to_neighbours.load(std::memory_order_relaxed) != 0 ||
           counters_.put_off.load(std::memory_order_relaxed) != 0;
  }
  void say_put_off();

  shm::BacklogCounters& counters_;
  std::atomic<std::uint32_t> put_off_since_ = 0; // coarse_ms() when one of them last went on
  std::atomic<int> put_off_peer_ = -1;
  std::atomic<bool> said_ = false;
};

} // namespace parc::client
