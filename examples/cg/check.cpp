// SPDX-License-Identifier: BSD-3-Clause
#include "examples/cg/check.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>
#include <vector>

namespace parc::examples::cg {
namespace {

using Way = Strip::Way;

// All ranks' strips, iterated by this one alone, with the same sums in the same order.
class Reference {
public:
  Reference(const Shape& shape, std::size_t ranks, Way way, int iterations) {
    for (std::size_t rank = 0; rank < ranks; ++rank)
      strips_.emplace_back(strip_of(shape.columns, shape.all_rows, rank, ranks), way);
    rho_ = sum_of([](Strip& each) { return each.residual(); });
    for (Strip& each : strips_) {
      each.backward(1);
      each.advance(0);
    }
    for (int i = 0; i < iterations; ++i) iterate(way == Way::Hidden);
  }

  [[nodiscard]] std::vector<Strip>& strips() { return strips_; }

private:
  template <class PartOf> double sum_of(const PartOf& part_of) {
    double sum = 0;
    for (Strip& each : strips_) sum += part_of(each);
    return sum;
  }

  void iterate(bool hide) {
    for (std::size_t i = 1; i < strips_.size(); ++i) {
      std::ranges::copy(strips_[i].border(Strip::Side::Above),
                        strips_[i - 1].ghosts(Strip::Side::Below).begin());
      std::ranges::copy(strips_[i - 1].border(Strip::Side::Below),
                        strips_[i].ghosts(Strip::Side::Above).begin());
    }
    const double alpha = ratio(rho_, sum_of([](Strip& each) {
                                 const double interior = each.multiply_interior(1);
                                 return interior + each.multiply_border();
                               }));
    for (Strip& each : strips_) {
      if (!hide) each.set_step(alpha);
      each.forward(1);
      each.set_step(alpha);
    }
    const double last = std::exchange(rho_, sum_of([](Strip& each) { return each.residual(); }));
    for (Strip& each : strips_) {
      each.backward(1);
      each.advance(ratio(rho_, last));
    }
  }

  std::vector<Strip> strips_;
  double rho_ = 0;
};

// x of all strips.
Field whole_of(Reference& reference, const Shape& whole) {
  Field all(whole);
  for (Strip& each : reference.strips()) {
    const Field& x = each.solution();
    for (std::size_t i = 1; i <= each.shape().rows; ++i)
      std::copy_n(x.row(i), whole.columns, all.row(each.shape().first + i));
  }
  return all;
}

// How far results are from what they should be, at the worst point.
struct Deviations {
  double solution = 0;          // the largest number of x, to compare with
  double ways = 0;              // blocking and hidden
  double residual = 0;          // b - A x, as carried on and as it is
  double norm = 0;              // (r, w) and (s, s), of the latter
  double before = 0, after = 0; // squares of the errors in A's norm, which every iteration makes less
};

Deviations deviations_of(const Shape& whole, Reference& reference, Reference& other) {
  const Field x = whole_of(reference, whole), also = whole_of(other, whole);
  Field exact(whole);
  for (std::size_t i = 1; i <= whole.rows; ++i)
    for (std::size_t j = 0; j < whole.columns; ++j) exact.row(i)[j] = exact_solution(whole, i, j + 1);
  Deviations found;
  for (const Strip& strip : reference.strips()) {
    const Field carried = strip.carried_residual();
    const Strip::Norm norm = strip.norm();
    if (norm.carried > std::numeric_limits<double>::min()) // what is less has few bits
      found.norm = std::max(found.norm, std::abs(norm.is / norm.carried - 1));
    for (std::size_t k = 1; k <= strip.shape().rows; ++k)
      for (std::size_t j = 0, i = strip.shape().first + k; j < whole.columns; ++j) {
        const double right = exact.row(i)[j], here = x.row(i)[j];
        const double b = laplacian(exact.row(i - 1), exact.row(i), exact.row(i + 1), j);
        const double r = b - laplacian(x.row(i - 1), x.row(i), x.row(i + 1), j);
        found.solution = std::max(found.solution, std::abs(right));
        found.ways = std::max(found.ways, std::abs(here - also.row(i)[j]));
        found.residual = std::max(found.residual, std::abs(r - carried.row(k)[j]));
        found.before += right * b;
        found.after += (right - here) * r;
      }
  }
  return found;
}

} // namespace

bool is_right(Strip& strip, Way way, int rank, int ranks, int iterations) {
  const Shape& shape = strip.shape();
  const auto all = static_cast<std::size_t>(ranks);
  Reference same(shape, all, way, iterations);
  Reference other(shape, all, way == Way::Hidden ? Way::Blocking : Way::Hidden, iterations);
  const Deviations found = deviations_of(strip_of(shape.columns, shape.all_rows, 0, 1), same, other);
  Strip& expected = same.strips()[static_cast<std::size_t>(rank)];
  constexpr double rounding = 1e-12;
  const double most = rounding * found.solution;
  return strip.solution() == expected.solution() && strip.carried_residual() == expected.carried_residual() &&
         found.ways <= most && found.residual <= most && found.norm <= rounding && found.after < found.before;
}

} // namespace parc::examples::cg
