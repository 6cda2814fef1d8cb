// SPDX-License-Identifier: BSD-3-Clause
// What an order and strips would have done for a program (HUNT 2005, sections 5.1, 5.2 and 7): the first
// touches of the pages of what it read, as its trace has them, played again against the arrival of the bytes.
// The time between two touches stays what it was, with what else was waited for in it; the bytes come evenly
// from the first one's time to the last one's, from one end or the other; a touch waits for its strip, and to
// be woken.
//
// Pure. Times are microseconds.
#pragma once

#include <cstdint>
#include <vector>

namespace parc::tools {

struct Sweep { // of pages in a row, up or down
  double begin, last, in_faults;
  std::uint64_t offset, last_offset, pages;
};

struct TouchedRead {
  double released;              // when its wait returned
  double first_byte, last_byte; // when they came
  std::uint64_t bytes;
  std::vector<Sweep> sweeps; // by time
};

enum class TouchOrder : std::uint8_t { any, up, down };

inline constexpr std::uint64_t measured_strips = 0; // as parc_set_strip has them
inline constexpr std::uint64_t whole_strip = UINT64_MAX;

struct Machine {
  double wake;              // what it costs to be woken for a touch
  std::uint64_t page_bytes; // at least 1
};

struct Suggestion {
  TouchOrder order;
  std::uint64_t strip;
  double waits; // of all
};

// In which these were touched: any but where nine of ten steps go that way; where there is none, any.
[[nodiscard]] TouchOrder order_of(const std::vector<TouchedRead>& reads);

// How long all of them would have waited.
[[nodiscard]] double replay(const std::vector<TouchedRead>& reads, bool downwards, std::uint64_t strip,
                            const Machine& machine);

// With the shortest waits; what is set at first stays where nothing is better by a twentieth of them,
// and by a hundredth of the time in which all came.
[[nodiscard]] Suggestion suggest(const std::vector<TouchedRead>& reads, const Machine& machine);

} // namespace parc::tools
