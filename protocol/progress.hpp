// SPDX-License-Identifier: BSD-3-Clause
// What has arrived of a message, or has been acknowledged: counted from both of its ends, and what came
// between them out of order, until the gap before it closes. That happens only where several byte streams
// carry it (protocol/subflows.cpp).
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace parc::protocol {

struct Span { // of a message
  std::uint64_t low = 0;
  std::uint64_t high = 0;
  [[nodiscard]] std::uint64_t length() const { return high - low; }
};

struct Progress {
  std::uint64_t front = 0;
  std::uint64_t back = 0;
  std::vector<Span> between; // ascending, with gaps between them and to both ends

  // Returns how many of those bytes are new.
  std::uint64_t add(std::uint64_t offset, std::uint64_t length, std::uint64_t total) {
    if (between.empty() && offset == front && length <= total - back - front) {
      front += length;
      return length;
    }
    if (between.empty() && offset >= front && offset + length == total - back) {
      back += length;
      return length;
    }
    return add_between({offset, offset + length}, total);
  }

  // Calls use(offset, length, counted) for each stretch of [offset, offset + length), in order.
  template <class Use>
  void each(std::uint64_t offset, std::uint64_t length, std::uint64_t total, Use use) const {
    const std::uint64_t end = offset + length, behind = total - back;
    if (between.empty() && offset >= front && end <= behind) return use(offset, length, false);
    const auto up_to = [&](std::uint64_t high, bool counted) {
      if (high > end) high = end;
      if (high <= offset) return;
      use(offset, high - offset, counted);
      offset = high;
    };
    up_to(front, true);
    for (auto span = std::ranges::upper_bound(between, offset, {}, &Span::high);
         span != between.end() && span->low < end; ++span) {
      up_to(span->low, false);
      up_to(span->high, true);
    }
    up_to(behind, false);
    up_to(end, true);
  }

private:
  std::uint64_t add_between(Span span, std::uint64_t total);
};

} // namespace parc::protocol
