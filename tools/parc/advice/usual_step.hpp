// SPDX-License-Identifier: BSD-3-Clause
// How long steps take, from when each of them began: the mean of the middle half of them. One that something
// else on the machine held up says nothing, and where two kinds take turns, both count. Pure.
#pragma once

#include <algorithm>
#include <cstddef>
#include <numeric>
#include <vector>

namespace parc::tools {

[[nodiscard]] inline double usual_step(const std::vector<double>& begins) { // in order
  if (begins.size() < 2) return 0;
  std::vector<double> steps;
  for (std::size_t i = 1; i < begins.size(); ++i) steps.push_back(begins[i] - begins[i - 1]);
  std::ranges::sort(steps);
  const auto quarter = static_cast<std::ptrdiff_t>(steps.size() / 4);
  return std::accumulate(steps.begin() + quarter, steps.end() - quarter, 0.0) /
         static_cast<double>(steps.end() - steps.begin() - 2 * quarter);
}

} // namespace parc::tools
