// SPDX-License-Identifier: BSD-3-Clause
// Whether early release pays, buffer by buffer. Some reads are touched as soon as their waits have returned,
// as those of a reduction are: guarding their pages costs something and hides nothing. When that was so
// several times in a row, the next reads of the buffer are not released, and then one is tried again. A few
// buffers are remembered: one that shares its place with another starts anew. Threads: any, and signal
// handlers; a count that is lost is no harm.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>

namespace parc::client {

class Benefit {
public:
  static constexpr unsigned patience = 4; // releases in vain
  static constexpr unsigned pause = 64;   // reads that are not released then

  // Of a read that starts: its wait should be released.
  [[nodiscard]] bool expected(const void* buffer) {
    Place& place = place_of(buffer);
    if (place.buffer.load(std::memory_order_relaxed) != buffer ||
        place.in_vain.load(std::memory_order_relaxed) < patience)
      return true;
    if (place.paused.fetch_add(1, std::memory_order_relaxed) + 1 < pause) return false;
    place.paused.store(0, std::memory_order_relaxed);
    place.in_vain.store(patience - 1, std::memory_order_relaxed);
    return true;
  }

  // Of one that was released.
  void ended(const void* buffer, bool paid) {
    Place& place = place_of(buffer);
    if (place.buffer.exchange(buffer, std::memory_order_relaxed) != buffer || paid) {
      place.in_vain.store(0, std::memory_order_relaxed);
      place.paused.store(0, std::memory_order_relaxed);
    }
    if (!paid) place.in_vain.fetch_add(1, std::memory_order_relaxed);
  }

private:
  struct Place {
    std::atomic<const void*> buffer = nullptr;
    std::atomic<unsigned> in_vain = 0, paused = 0;
  };
  [[nodiscard]] Place& place_of(const void* buffer) {
    const auto address = reinterpret_cast<std::uintptr_t>(buffer);
    return places_[(address >> 6 ^ address >> 12 ^ address >> 20) % places_.size()];
  }

  std::array<Place, 64> places_;
};

} // namespace parc::client
