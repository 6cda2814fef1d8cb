// SPDX-License-Identifier: BSD-3-Clause
#include "model/gain.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

namespace parc::model {

double blocking_time(double x) {
  return 1 + x;
}

double hidden_time(double x, const Hiding& hiding) {
  return (1 - hiding.f) + std::max(hiding.f + hiding.omega, x);
}

double gain(double x, const Hiding& hiding) {
  return blocking_time(x) / hidden_time(x, hiding);
}

double gain_of_times(double t_calc, double t_com) {
  const double longer = std::max(t_calc, t_com);
  return longer > 0 ? (t_calc + t_com) / longer : 1;
}

double best_x(const Hiding& hiding) {
  return hiding.f + hiding.omega;
}

double largest_gain(const Hiding& hiding) {
  return gain(best_x(hiding), hiding);
}

double least_x(const Hiding& hiding) {
  return hiding.omega;
}

// Below best_x the gain is (1 + x) / (1 + Omega), and above it (1 + x) / (1 - f + x): it rises to there, and
// falls behind it.
std::optional<Range> range_of_x(double wanted, const Hiding& hiding) {
  if (wanted > largest_gain(hiding)) return std::nullopt;
  const double least = std::max(0.0, wanted * (1 + hiding.omega) - 1);
  if (wanted <= 1) return Range{least, std::numeric_limits<double>::infinity()};
  return Range{least, std::max(least, (1 - wanted * (1 - hiding.f)) / (wanted - 1))};
}

double transfer_time(double bytes, const Link& link) {
  return link.startup + bytes / link.bandwidth;
}

double Program::x(double p) const {
  return messages(p) * message * p / alone;
}

double speedup(const Program& program, double p) {
  return p / blocking_time(program.x(p));
}

double speedup(const Program& program, double p, const Hiding& hiding) {
  return p / hidden_time(program.x(p), hiding);
}

Best largest(std::uint64_t most, const std::function<double(double p)>& value) {
  Best best{1, value(1)};
  for (std::uint64_t p = 2; p <= most; ++p)
    if (const double here = value(static_cast<double>(p)); here > best.value) best = {p, here};
  return best;
}

std::optional<std::uint64_t> most_with_efficiency(std::uint64_t most, double efficiency,
                                                  const std::function<double(double p)>& speedup) {
  for (std::uint64_t p = most; p >= 1; --p) {
    const auto number = static_cast<double>(p);
    if (speedup(number) >= efficiency * number) return p;
  }
  return std::nullopt;
}

double ConjugateGradients::time(double p) const {
  return a() / p + b() * std::sqrt(p);
}

double ConjugateGradients::hidden_time(double p) const {
  return (1 - f()) * a() / p + std::max(f() * a() / p + omega(), b() * std::sqrt(p));
}

} // namespace parc::model
