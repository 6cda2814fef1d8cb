// SPDX-License-Identifier: BSD-3-Clause
// What has come of a read between its two ends, where several streams bring it (protocol/progress.hpp): a bit
// for each of its grains that is there whole, in one word that is stored and loaded at once, in
// Operation::error while that is not over. The highest bit is never set: so no error is a word of any.
#pragma once

#include "protocol/progress.hpp"

#include <algorithm>
#include <bit>
#include <cstdint>
#include <span>

namespace parc::shm {

inline constexpr std::uint32_t grains = 31;

// Of a read with room for so many bytes.
inline constexpr std::uint64_t grain_of(std::uint64_t room) {
  return std::max<std::uint64_t>(4096, room / grains + 1);
}

// The word of these, which ascend and are apart. They may be thousands: they are searched, once for a grain.
inline constexpr std::int32_t between_word(std::span<const protocol::Span> spans, std::uint64_t room) {
  const std::uint64_t grain = grain_of(room);
  std::uint32_t bits = 0;
  auto span = spans.begin();
  for (std::uint32_t at = 0; at < grains && span != spans.end(); ++at) {
    const std::uint64_t low = at * grain, high = low + grain;
    if (span->high < high) // the first one that may have all of it
      span = std::ranges::lower_bound(span, spans.end(), high, {}, &protocol::Span::high);
    if (span != spans.end() && span->low <= low) bits |= std::uint32_t{1} << at;
  }
  return static_cast<std::int32_t>(bits);
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

// How many bytes of [low, high) a word tells of.
inline constexpr std::uint64_t bytes_between(std::int32_t word, std::uint64_t room, std::uint64_t low,
                                             std::uint64_t high) {
  std::uint64_t bytes = 0;
  each_between(word, room, [&](std::uint64_t from, std::uint64_t to) {
    from = std::max(from, low);
    to = std::min(to, high);
    if (from < to) bytes += to - from;
  });
  return bytes;
}

} // namespace parc::shm
