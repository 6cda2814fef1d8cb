// SPDX-License-Identifier: BSD-3-Clause
#include "examples/heat/strip.hpp"

#include <algorithm>
#include <chrono>
#include <thread>
#include <utility>

namespace parc::heat {

namespace {

// One column of the next time step. Not inlined, and the memory clobber in its caller, so that a compiler
// cannot see that calculating it again changes nothing.
[[gnu::noinline]] void calculate_column(double* __restrict target, const double* left, const double* here,
                                        const double* right, std::size_t points) {
  for (std::size_t j = 1; j + 1 < points; ++j)
    target[j] = r_x * left[j] + r_x * right[j] + (1 - 2 * r_x - 2 * r_y) * here[j] + r_y * here[j - 1] +
                r_y * here[j + 1];
}

double square(double value) {
  return value * value;
}

} // namespace

// A cold plate with a warm left rim and three hot spots, the largest of them across the middle. Polynomials
// only, so that every machine starts from the same bits.
double initial_temperature(std::size_t x, std::size_t y, std::size_t columns, std::size_t points) {
  const double across = static_cast<double>(x) / static_cast<double>(columns + 1);
  const double along = static_cast<double>(y) / static_cast<double>(points - 1);
  const auto spot = [&](double centre_x, double centre_y, double radius, double peak) {
    const double distance = (square(across - centre_x) + square(along - centre_y)) / square(radius);
    return peak * std::max(0.0, 1 - distance);
  };
  const double rim = x == 0 ? 0.6 * along * (1 - along) * 4 : 0;
  return rim + spot(0.5, 0.45, 0.2, 1.0) + spot(0.22, 0.7, 0.12, 0.8) + spot(0.8, 0.75, 0.15, 0.9);
}

Strip::Strip(const Shape& shape, double* travelling) : shape_(shape) {
  const std::size_t all = shape.columns + 2;
  own_.resize(2 * all * shape.points);
  double* own = own_.data();
  const auto place = [&](std::size_t x) {
    double*& next = travelling && (x <= 1 || x >= shape.columns) ? travelling : own;
    return std::exchange(next, next + shape.points);
  };
  const std::size_t first = static_cast<std::size_t>(shape.rank) * shape.columns;
  const std::size_t whole = static_cast<std::size_t>(shape.ranks) * shape.columns;
  for (auto* array : {&source_, &target_}) {
    for (std::size_t x = 0; x < all; ++x) {
      double* column = place(x);
      for (std::size_t y = 0; y < shape.points; ++y)
        column[y] = initial_temperature(first + x, y, whole, shape.points);
      array->push_back(column);
    }
  }
}

int Strip::neighbour(Side side) const {
  if (side == Side::Left) return shape_.rank - 1;
  return shape_.rank + 1 < shape_.ranks ? shape_.rank + 1 : -1;
}

void Strip::calculate_borders() {
  if (has_neighbour(Side::Left)) calculate(1, 1);
  if (has_neighbour(Side::Right) && !(has_neighbour(Side::Left) && shape_.columns == 1))
    calculate(shape_.columns, shape_.columns);
}

void Strip::calculate_interior() {
  calculate(has_neighbour(Side::Left) ? 2 : 1,
            has_neighbour(Side::Right) ? shape_.columns - 1 : shape_.columns);
}

void Strip::calculate_all() {
  calculate(1, shape_.columns);
}

void Strip::calculate(std::size_t first, std::size_t last) {
  const auto start = std::chrono::steady_clock::now();
  const bool downwards = shape_.towards && shape_.rank % 2 != 0;
  for (std::size_t i = first; i <= last; ++i) {
    const std::size_t x = downwards ? first + last - i : i;
    for (int k = 0; k < shape_.work; ++k) {
      calculate_column(target_[x], source_[x - 1], source_[x], source_[x + 1], shape_.points);
      asm volatile("" ::: "memory");
    }
  }
  if (shape_.column_ms > 0 && last >= first)
    std::this_thread::sleep_until(start + std::chrono::duration_cast<std::chrono::steady_clock::duration>(
                                              std::chrono::duration<double, std::milli>(
                                                  shape_.column_ms * static_cast<double>(last - first + 1))));
  calculation_seconds_ += std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

} // namespace parc::heat
