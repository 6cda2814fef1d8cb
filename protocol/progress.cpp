// SPDX-License-Identifier: BSD-3-Clause
#include "protocol/progress.hpp"

#include <algorithm>

namespace parc::protocol {

std::uint64_t Progress::add_between(Span span, std::uint64_t total) {
  span.low = std::max(span.low, front);
  span.high = std::min(span.high, total - back);
  if (span.low >= span.high) return 0;
  // Those that it touches become one with it.
  const auto first = std::ranges::lower_bound(between, span.low, {}, &Span::high);
  const auto last =
      std::find_if(first, between.end(), [&](const Span& each) { return each.low > span.high; });
  std::uint64_t known = 0;
  for (auto each = first; each != last; ++each)
    known += std::min(each->high, span.high) - std::max(each->low, span.low);
  const std::uint64_t added = span.length() - known;
  if (first != last) {
    span.low = std::min(span.low, first->low);
    span.high = std::max(span.high, (last - 1)->high);
  }
  const bool closes_front = span.low == front, closes_back = span.high == total - back;
  const auto place = between.erase(first, last);
  if (closes_front)
    front = span.high;
  else if (closes_back)
    back = total - span.low;
  else
    between.insert(place, span);
  return added;
}

} // namespace parc::protocol
