// SPDX-License-Identifier: BSD-3-Clause
// The steps of a program, from what it does again and again. Pure.
#pragma once

#include <algorithm>
#include <cstddef>
#include <vector>

namespace parc::tools {

struct Period {
  std::size_t length = 0;         // 0: nothing repeats itself
  std::size_t begin = 0, end = 0; // the stretch of the sequence that does
};

// The shortest of those that repeat themselves over the longest stretch: at least three times, and over half
// of the sequence.
template <class Key> Period find_period(const std::vector<Key>& sequence) {
  const std::size_t size = sequence.size();
  constexpr std::size_t longest = 4096, compared = 100'000'000; // of a step; in all
  const std::size_t most = std::min(longest, compared / std::max<std::size_t>(size, 1));
  Period best;
  for (std::size_t length = 1; length <= std::min(size / 3, most); ++length) {
    std::size_t begin = 0, at = 0;
    const auto take = [&] { // [begin, at + length) repeats itself
      const std::size_t end = at + length;
      if (at - begin >= 2 * length && 2 * (end - begin) >= size && end - begin > best.end - best.begin)
        best = {length, begin, end};
    };
    for (; at + length < size; ++at)
      if (!(sequence[at] == sequence[at + length])) {
        take();
        begin = at + 1;
      }
    take();
    if (best.length != 0 && 10 * (best.end - best.begin) >= 9 * size) break; // nothing longer says more
  }
  return best;
}

} // namespace parc::tools
