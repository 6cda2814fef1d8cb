// SPDX-License-Identifier: BSD-3-Clause
#include "examples/cg/strip.hpp"

#include "examples/steps/steps.hpp"

#include <cmath>
#include <utility>

namespace parc::examples::cg {
namespace {

// A diagonal element of L squared is what the products of the row's other two elements leave of A's 4. What
// is above the strip is another rank's, and no part of this factor.
Field inverse_diagonal(const Shape& shape) {
  Field inverse(shape);
  for (std::size_t i = 1; i <= shape.rows; ++i) {
    const double* const above = inverse.row(i - 1);
    double* const here = inverse.row(i);
    for (std::size_t j = 0; j < shape.columns; ++j)
      here[j] = 1 / std::sqrt(4 - above[j] * above[j] - here[j - 1] * here[j - 1]);
  }
  return inverse;
}

// Of the strip and one row at either side. Rows count from the one around the grid.
Field right_hand_side(const Shape& shape) {
  const Shape wider{shape.columns, shape.all_rows, shape.first, shape.rows + 2};
  Field x(wider), b(shape);
  for (std::size_t i = 1; i <= wider.rows; ++i)
    for (std::size_t j = 0; j < shape.columns; ++j)
      x.row(i)[j] = exact_solution(shape, shape.first + i - 1, j + 1);
  for (std::size_t i = 1; i <= shape.rows; ++i)
    for (std::size_t j = 0; j < shape.columns; ++j)
      b.row(i)[j] = laplacian(x.row(i), x.row(i + 1), x.row(i + 2), j);
  return b;
}

} // namespace

double exact_solution(const Shape& shape, std::size_t row, std::size_t column) {
  const double y = static_cast<double>(row) / static_cast<double>(shape.all_rows + 1);
  const double x = static_cast<double>(column) / static_cast<double>(shape.columns + 1);
  return x * (1 - x) * y * (1 - y) * (1 + x + 2 * y);
}

Strip::Strip(const Shape& shape, Way way)
    : shape_(shape), way_(way), inverse_(inverse_diagonal(shape)), x_(shape), r_(right_hand_side(shape)),
      s_(shape), p_(shape), previous_(shape), q_(shape), z_(shape) {
  solve_forward(r_, s_, 1);
}

std::span<double> Strip::border(Side side) {
  return {p_.row(side == Side::Above ? 1 : shape_.rows), shape_.columns};
}

std::span<double> Strip::ghosts(Side side) {
  return {p_.row(side == Side::Above ? 0 : shape_.rows + 1), shape_.columns};
}

double Strip::multiply_row(std::size_t i) {
  const double *const above = p_.row(i - 1), *const here = p_.row(i), *const below = p_.row(i + 1);
  double* const to = q_.row(i);
  for (std::size_t j = 0; j < shape_.columns; ++j) to[j] = laplacian(above, here, below, j);
  double product = 0;
  for (std::size_t j = 0; j < shape_.columns; ++j) product += here[j] * to[j];
  return product;
}

double Strip::multiply_interior(int times) {
  double product = 0;
  for (int k = 0; k < times; ++k) {
    product = 0;
    for (std::size_t i = 2; i < shape_.rows; ++i) product += multiply_row(i);
    forget_results();
  }
  return product;
}

double Strip::multiply_border() {
  const double product = multiply_row(1);
  return shape_.rows > 1 ? product + multiply_row(shape_.rows) : product;
}

void Strip::add(double factor, const Field& from, Field& to) const {
  for (std::size_t i = 1; i <= shape_.rows; ++i) {
    const double* const source = from.row(i);
    double* const target = to.row(i);
    for (std::size_t j = 0; j < shape_.columns; ++j) target[j] += factor * source[j];
  }
}

// In both sweeps a point waits for the one before it: what does not depend on that is kept out of the chain.
void Strip::solve_forward(const Field& from, Field& to, int times) const {
  for (int k = 0; k < times; ++k) {
    for (std::size_t i = 1; i <= shape_.rows; ++i) {
      const double *const inverse = inverse_.row(i), *const inverse_above = inverse_.row(i - 1);
      const double *const source = from.row(i), *const above = to.row(i - 1);
      double* const here = to.row(i);
      for (std::size_t j = 0; j < shape_.columns; ++j)
        here[j] = inverse[j] * (source[j] + inverse_above[j] * above[j]) +
                  inverse[j] * inverse[j - 1] * here[j - 1];
    }
    forget_results();
  }
}

void Strip::backward(int times) {
  for (int k = 0; k < times; ++k) {
    for (std::size_t i = shape_.rows; i >= 1; --i) {
      const double *const inverse = inverse_.row(i), *const source = s_.row(i), *const below = z_.row(i + 1);
      double* const here = z_.row(i);
      for (std::size_t j = shape_.columns; j-- > 0;)
        here[j] = inverse[j] * (source[j] + inverse[j] * below[j]) + inverse[j] * inverse[j] * here[j + 1];
    }
    forget_results();
  }
}

void Strip::forward(int times) {
  if (way_ == Way::Hidden) {
    add(alpha_, previous_, x_);
    solve_forward(q_, z_, times);
  } else {
    add(alpha_, p_, x_);
    add(-alpha_, q_, r_);
    solve_forward(r_, s_, times);
  }
}

double Strip::residual() {
  double sum = 0;
  for (std::size_t i = 1; i <= shape_.rows; ++i) {
    double* const s = s_.row(i);
    const double* const v = z_.row(i);
    if (way_ == Way::Hidden)
      for (std::size_t j = 0; j < shape_.columns; ++j) s[j] -= alpha_ * v[j];
    double product = 0;
    for (std::size_t j = 0; j < shape_.columns; ++j) product += s[j] * s[j];
    sum += product;
  }
  return sum;
}

void Strip::advance(double beta) {
  Field& next = way_ == Way::Hidden ? previous_ : p_;
  for (std::size_t i = 1; i <= shape_.rows; ++i) {
    const double *const w = z_.row(i), *const p = p_.row(i);
    double* const to = next.row(i);
    for (std::size_t j = 0; j < shape_.columns; ++j) to[j] = w[j] + beta * p[j];
  }
  if (way_ == Way::Hidden) std::swap(p_, previous_);
}

const Field& Strip::solution() {
  if (way_ == Way::Hidden) add(std::exchange(alpha_, 0), previous_, x_);
  return x_;
}

Field Strip::carried_residual() const {
  if (way_ == Way::Blocking) return r_;
  Field r(shape_); // L s
  for (std::size_t i = 1; i <= shape_.rows; ++i) {
    const double *const inverse = inverse_.row(i), *const inverse_above = inverse_.row(i - 1);
    const double *const s = s_.row(i), *const above = s_.row(i - 1);
    for (std::size_t j = 0; j < shape_.columns; ++j)
      r.row(i)[j] = s[j] / inverse[j] - inverse_above[j] * above[j] - inverse[j - 1] * s[j - 1];
  }
  return r;
}

Strip::Norm Strip::norm() const {
  const Field r = carried_residual();
  Norm norm{0, 0};
  for (std::size_t i = 1; i <= shape_.rows; ++i)
    for (std::size_t j = 0; j < shape_.columns; ++j) {
      norm.is += r.row(i)[j] * z_.row(i)[j];
      norm.carried += s_.row(i)[j] * s_.row(i)[j];
    }
  return norm;
}

} // namespace parc::examples::cg
