// SPDX-License-Identifier: BSD-3-Clause
// What one rank calculates in conjugate gradients for A x = b, preconditioned with L L^T: A is the Laplacian
// of five points on a square with zeros around it, of which each rank has a strip of rows, and L the
// incomplete Cholesky factor of its strip alone, without fill. No messages are in here: rows of neighbours
// are put into ghosts(), and sums over all ranks are made by who calls.
//
// In either way an iteration is multiply_interior, multiply_border, forward, residual, backward, advance, and
// differs in when set_step is called with alpha = rho / (p, q): the hidden way needs it for residual, the
// blocking one for forward already (de Sturler and van der Vorst 1995).
#pragma once

#include <cstddef>
#include <span>
#include <vector>

namespace parc::examples::cg {

struct Shape {
  std::size_t columns;  // of the grid
  std::size_t all_rows; // of the grid
  std::size_t first;    // row of the strip
  std::size_t rows;     // of the strip
};

[[nodiscard]] inline Shape strip_of(std::size_t columns, std::size_t all_rows, std::size_t rank,
                                    std::size_t ranks) {
  const std::size_t first = all_rows * rank / ranks;
  return {columns, all_rows, first, all_rows * (rank + 1) / ranks - first};
}

// A number for each point of a strip, and zeros around them: sweeps and differences need no cases for edges.
class Field {
public:
  explicit Field(const Shape& shape) : width_(shape.columns + 2), values_((shape.rows + 2) * width_) {}

  // Row i of the strip, from 1 on; -1 and `columns` may be read, too.
  [[nodiscard]] double* row(std::size_t i) { return values_.data() + i * width_ + 1; }
  [[nodiscard]] const double* row(std::size_t i) const { return values_.data() + i * width_ + 1; }

  friend bool operator==(const Field&, const Field&) = default;

private:
  std::size_t width_;
  std::vector<double> values_;
};

class Strip {
public:
  enum class Way { Blocking, Hidden };

  Strip(const Shape& shape, Way way);

  // The row of p that the neighbour above or below needs, and where that of theirs goes.
  enum class Side { Above, Below };
  [[nodiscard]] std::span<double> border(Side side);
  [[nodiscard]] std::span<double> ghosts(Side side);

  // `times`: how often what may be repeated is calculated, with the same result.
  double multiply_interior(int times); // q = A p, where that needs no ghosts; returns that part of (p, q)
  double multiply_border();            // the rest
  void set_step(double alpha) { alpha_ = alpha; }
  // Blocking: x += alpha p, r -= alpha q, s = L^-1 r. Hidden: x += alpha p of the iteration before, whose
  // alpha is the last that was set, and v = L^-1 q.
  void forward(int times);
  double residual();         // hidden: s -= alpha v; returns (s, s)
  void backward(int times);  // w = L^-T s
  void advance(double beta); // p = w + beta p

  // x as of the last iteration, and r = b - A x as the iterations have carried it on.
  [[nodiscard]] const Field& solution();
  [[nodiscard]] Field carried_residual() const;
  // This strip's part of (r, w), which is (s, s) where w = L^-T L^-1 r.
  struct Norm {
    double is, carried;
  };
  [[nodiscard]] Norm norm() const;

  [[nodiscard]] const Shape& shape() const { return shape_; }

private:
  double multiply_row(std::size_t i);
  void solve_forward(const Field& from, Field& to, int times) const;
  void add(double factor, const Field& from, Field& to) const;

  Shape shape_;
  Way way_;
  double alpha_ = 0;
  Field inverse_;      // of the diagonal of L, which is all of it: beside it stand -inverse_ of the column's
  Field x_;            // hidden: as of the iteration before
  Field r_;            // blocking alone
  Field s_;            // L^-1 r
  Field p_, previous_; // the latter hidden alone, until x has got it
  Field q_;
  Field z_; // v, then w
};

// Alpha and beta. Where nothing is left of a residual, nothing changes any more.
[[nodiscard]] inline double ratio(double over, double under) {
  return under > 0 ? over / under : 0;
}

// The x that b is made for, zero around the grid.
[[nodiscard]] double exact_solution(const Shape& shape, std::size_t row, std::size_t column);
// (A u)[j] of one row, from those above, of and below it.
[[nodiscard]] inline double laplacian(const double* above, const double* here, const double* below,
                                      std::size_t j) {
  return 4 * here[j] - (above[j] + below[j]) - (here[j - 1] + here[j + 1]);
}

} // namespace parc::examples::cg
