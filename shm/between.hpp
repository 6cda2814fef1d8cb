// SPDX-License-Identifier: BSD-3-Clause
// What has come of a read between its two ends, where several streams bring it (protocol/progress.hpp): a bit
// for each of its grains that is there whole, in one word that is stored and loaded at once, in
// Operation::error while that is not over. The highest bit is never set: so no error is a word of any.
#pragma once

#include <algorithm>
#include <bit>
#include <cstdint>

namespace parc::shm {

inline constexpr std::uint32_t grains = 31;

// Of a read with room for so many bytes.
inline constexpr std::uint64_t grain_of(std::uint64_t room) {
  return std::max<std::uint64_t>(4096, room / grains + 1);
}

// The word with [low, high) in it, too.
inline constexpr std::int32_t with_between(std::int32_t word, std::uint64_t low, std::uint64_t high,
                                           std::uint64_t room) {
  const std::uint64_t grain = grain_of(room);
  const std::uint64_t first = (low + grain - 1) / grain,
                      behind = std::min<std::uint64_t>(high / grain, grains);
  if (first >= behind) return word;
  const std::uint32_t bits = (std::uint32_t{1} << behind) - (std::uint32_t{1} << first);
  return static_cast<std::int32_t>(static_cast<std::uint32_t>(word) | bits);
}

// Calls use(low, high) for each stretch that a word tells of, in order.
template <class Use> constexpr void each_between(std::int32_t word, std::uint64_t room, const Use& use) {
  if (word <= 0) return;
  const std::uint64_t grain = grain_of(room);
  auto bits = static_cast<std::uint32_t>(word);
  for (int at = 0; bits != 0;) {
    at += std::countr_zero(bits);
    bits = static_cast<std::uint32_t>(word) >> at;
    const int length = std::countr_one(bits);
    use(static_cast<std::uint64_t>(at) * grain, static_cast<std::uint64_t>(at + length) * grain);
    at += length;
    bits = static_cast<std::uint32_t>(word) >> at;
  }
}

} // namespace parc::shm
