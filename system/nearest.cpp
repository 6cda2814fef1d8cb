// SPDX-License-Identifier: BSD-3-Clause
// Optimal string alignment distance over names of a few dozen letters.
#include "system/nearest.hpp"

#include <algorithm>
#include <fmt/format.h>
#include <vector>

namespace parc {
namespace {

std::size_t distance(std::string_view a, std::string_view b) {
  std::vector<std::size_t> before(b.size() + 1), last(b.size() + 1), row(b.size() + 1);
  for (std::size_t j = 0; j <= b.size(); ++j) last[j] = j;
  for (std::size_t i = 1; i <= a.size(); ++i) {
    row[0] = i;
    for (std::size_t j = 1; j <= b.size(); ++j) {
      row[j] = std::min({last[j] + 1, row[j - 1] + 1, last[j - 1] + (a[i - 1] != b[j - 1])});
      if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1])
        row[j] = std::min(row[j], before[j - 2] + 1);
    }
    std::swap(before, last);
    std::swap(last, row);
  }
  return last[b.size()];
}

} // namespace

std::string_view nearest(std::string_view name, std::span<const std::string_view> candidates) {
  constexpr std::size_t longest = 64; // what nobody mistyped is not worth comparing
  if (name.size() > longest) return {};
  std::string_view best;
  std::size_t best_distance = 1 + std::max<std::size_t>(1, name.size() / 3);
  for (const auto candidate : candidates) {
    const bool prefix = name.size() >= 3 && candidate.starts_with(name);
    const std::size_t d = prefix ? 1 : distance(name, candidate);
    if (d < best_distance) best = candidate, best_distance = d;
  }
  return best;
}

std::string did_you_mean(std::string_view name, std::span<const std::string_view> candidates) {
  const auto meant = nearest(name, candidates);
  return meant.empty() ? std::string{} : fmt::format("; did you mean {}?", meant);
}

} // namespace parc
