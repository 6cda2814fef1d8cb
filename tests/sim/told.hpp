// SPDX-License-Identifier: BSD-3-Clause
// What an engine tells of an operation's progress, byte by byte, whether it is at an end of the message or
// between: what it has told of once it goes on telling of.
#pragma once

#include "protocol/progress.hpp"
#include "tests/sim/violation.hpp"

#include <cstdint>
#include <vector>

namespace parc::sim {

// The stretches that it tells of, ascending, none of them empty.
inline std::vector<protocol::Span> told(const protocol::Progress& progress, std::uint64_t total) {
  if (progress.front > total || progress.back > total - progress.front)
    throw Violation("progress of more than there is");
  std::vector<protocol::Span> stretches;
  if (progress.front != 0) stretches.push_back({0, progress.front});
  std::uint64_t last = progress.front;
  for (const protocol::Span& span : progress.between) {
    if (span.low <= last || span.low >= span.high) throw Violation("progress is out of order");
    last = span.high;
    stretches.push_back(span);
  }
  if (!progress.between.empty() && last >= total - progress.back) throw Violation("progress is out of order");
  if (progress.back != 0) stretches.push_back({total - progress.back, total});
  return stretches;
}

// Calls use(low, high) for each stretch that `before` has not told of.
template <class Use> void each_new(const protocol::Progress& before, const protocol::Progress& now,
                                   std::uint64_t total, const Use& use) {
  const auto stretches = told(now, total);
  for (const protocol::Span& old : told(before, total))
    now.each(old.low, old.length(), total, [](std::uint64_t, std::uint64_t, bool counted) {
      if (!counted) throw Violation("progress went back");
    });
  for (const protocol::Span& stretch : stretches)
    before.each(stretch.low, stretch.length(), total, [&](std::uint64_t at, std::uint64_t n, bool counted) {
      if (!counted) use(at, at + n);
    });
}

} // namespace parc::sim
