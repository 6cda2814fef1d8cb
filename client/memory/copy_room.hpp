// SPDX-License-Identifier: BSD-3-Clause
// How many bytes of messages may be held as copies after their writer went on: parc_set_copy_room.
// Threads: any.
#pragma once

#include <atomic>
#include <cstdint>

namespace parc::client {

class CopyRoom {
public:
  void set(std::uint64_t bytes) { room_.store(bytes, std::memory_order_relaxed); }

  [[nodiscard]] bool reserve(std::uint64_t bytes) {
    const auto room = room_.load(std::memory_order_relaxed);
    auto held = held_.load(std::memory_order_relaxed);
    do {
      if (bytes > room || held > room - bytes) return false;
    } while (!held_.compare_exchange_weak(held, held + bytes, std::memory_order_relaxed));
    return true;
  }
  void free(std::uint64_t bytes) {
    if (bytes != 0) held_.fetch_sub(bytes, std::memory_order_relaxed);
  }
  // More than a path holds, and nobody has said how much may be held.
  [[nodiscard]] bool holds_plenty() const {
    return held_.load(std::memory_order_relaxed) >= plenty &&
           room_.load(std::memory_order_relaxed) == UINT64_MAX;
  }

private:
  static constexpr std::uint64_t plenty = 256 << 20;
  std::atomic<std::uint64_t> room_ = UINT64_MAX; // whatever the arena can grow to
  std::atomic<std::uint64_t> held_ = 0;
};

} // namespace parc::client
