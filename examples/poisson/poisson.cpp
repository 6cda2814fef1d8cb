// SPDX-License-Identifier: BSD-3-Clause
// poisson (PES of erMPI 2005): an iterative two-dimensional solver. Every rank has as many contiguous rows;
// in each iteration it updates them, sends the first and the last to the neighbours above and below, and
// receives from them the two ghost rows that the next iteration needs. Two corners are held at 1, two at 0.
//   parc run -n 4 --hosts a:2,b:2 --early-release poisson --size 1024
#include "examples/steps/steps.hpp"

#include <vector>

namespace {

using parc::Context;
using parc::examples::Options;

struct Shape {
  std::size_t size = 512; // columns, and rows of a square
  std::size_t rows = 0;   // of all ranks; 0: as many as columns
};

// Rows [first, first + rows) of the square, and a ghost row at either side. A value depends on its place and
// its neighbours only: however the square is cut, the bits are the same.
class Slab {
public:
  Slab(const Shape& shape, std::size_t first, std::size_t rows)
      : size_(shape.size), all_rows_(shape.rows), first_(first), rows_(rows), now_((rows + 2) * size_),
        next_((rows + 2) * size_) {
    for (auto* field : {&now_, &next_}) {
      if (first == 0) row_of(*field, 1)[0] = 1;
      if (first + rows == all_rows_) row_of(*field, rows)[size_ - 1] = 1;
    }
  }

  // From top to bottom: the upper ghost is needed first, the lower one last.
  void calculate(int times) {
    for (std::size_t i = 1; i <= rows_; ++i)
      for (int k = 0; k < times; ++k) {
        calculate_row(i);
        parc::examples::forget_results();
      }
  }
  void advance() { now_.swap(next_); }

  [[nodiscard]] std::size_t rows() const { return rows_; }
  [[nodiscard]] std::span<double> next_row(std::size_t i) { return {row_of(next_, i), size_}; }
  [[nodiscard]] const double* row(std::size_t i) const { return now_.data() + i * size_; }

private:
  double* row_of(std::vector<double>& field, std::size_t i) { return field.data() + i * size_; }

  // The mean of the neighbours that there are; the corners keep what they have.
  void calculate_row(std::size_t i) {
    const std::size_t y = first_ + i - 1, last = size_ - 1;
    const double* const here = row_of(now_, i);
    const double* const above = y == 0 ? nullptr : here - size_;
    const double* const below = y + 1 == all_rows_ ? nullptr : here + size_;
    double* const to = row_of(next_, i);
    if (above == nullptr || below == nullptr) {
      const double* const beside = above != nullptr ? above : below;
      for (std::size_t x = 1; x < last; ++x) to[x] = (here[x - 1] + here[x + 1] + beside[x]) / 3;
      return;
    }
    to[0] = (above[0] + below[0] + here[1]) / 3;
    for (std::size_t x = 1; x < last; ++x) to[x] = (here[x - 1] + here[x + 1] + above[x] + below[x]) * 0.25;
    to[last] = (above[last] + below[last] + here[last - 1]) / 3;
  }

  std::size_t size_, all_rows_;
  std::size_t first_, rows_;
  std::vector<double> now_, next_;
};

void exchange(Context& parc, Slab& slab) {
  constexpr int down = 1, up = 2;
  const int above = parc.rank() - 1, below = parc.rank() + 1 < parc.size() ? parc.rank() + 1 : -1;
  parc::Operation reads[2];
  if (above >= 0) reads[0] = parc.initread(above, down, slab.next_row(0));
  if (below >= 0) reads[1] = parc.initread(below, up, slab.next_row(slab.rows() + 1));
  if (above >= 0) parc.write(above, up, slab.next_row(1));
  if (below >= 0) parc.write(below, down, slab.next_row(slab.rows()));
  parc.wait_all(reads);
}

bool is_right(const Shape& shape, const Slab& slab, std::size_t first, int iterations) {
  Slab whole(shape, 0, shape.rows);
  for (int i = 0; i < iterations; ++i) {
    whole.calculate(1);
    whole.advance();
  }
  for (std::size_t i = 1; i <= slab.rows(); ++i)
    if (!std::equal(slab.row(i), slab.row(i) + shape.size, whole.row(first + i))) return false;
  return true;
}

int solve(const Shape& shape, const Options& options) {
  Context parc;
  const auto size = static_cast<std::size_t>(parc.size()), rank = static_cast<std::size_t>(parc.rank());
  const std::size_t first = shape.rows * rank / size, rows = shape.rows * (rank + 1) / size - first;
  Slab slab(shape, first, rows);
  const auto timing = time_steps(parc, options, [&](int step) {
    if (!options.only_messages) slab.calculate(options.times(parc.rank(), step));
    if (!options.alone) exchange(parc, slab);
    slab.advance();
  });
  const bool correct = !options.check || is_right(shape, slab, first, options.warm_up + options.steps);
  return say("poisson", parc, options, timing, correct);
}

} // namespace

int main(int count, char** arguments) {
  Shape shape;
  Options options;
  const parc::examples::Program program{
      .name = "poisson",
      .purpose = "An iterative two-dimensional Poisson solver, rows on each rank",
      .sizes = {{"--size", "Rows and columns of the square", shape.size, 8, 1 << 20},
                {"--rows", "Rows, where it is no square (0: it is one)", shape.rows, 0, 1 << 20}},
      .presets = {{"A", 5120, 2000}, {"B", 10240, 1000}, {"C", 20480, 500}, {"small", 512, 50}}};
  return parc::examples::run_program(program, options, count, arguments, [&] {
    if (shape.rows == 0) shape.rows = shape.size;
    return solve(shape, options);
  });
}
