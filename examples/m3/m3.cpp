// SPDX-License-Identifier: BSD-3-Clause
// m3 (M3 of erMPI 2005): a stream of matrices. In every iteration the master (rank 0) makes a matrix A, sends
// each slave a slice of its rows, and gathers C = A * B in slices; B is known to all from the start.
//   parc run -n 3 --hosts a:2,b --early-release m3 --size 512
#include "examples/steps/steps.hpp"

#include <vector>

namespace {

using parc::Context;
using parc::examples::Options;

using Matrix = std::vector<double>; // rows one after the other

double element_of_a(std::size_t size, int iteration, std::size_t row, std::size_t column) {
  return static_cast<double>((row * 31 + column * 17 + static_cast<std::size_t>(iteration) * 7) % size) /
         static_cast<double>(size);
}

// The transform matrix, transposed.
Matrix make_b(std::size_t size) {
  Matrix b(size * size);
  for (std::size_t i = 0; i < size; ++i)
    for (std::size_t j = 0; j < size; ++j)
      b[i * size + j] = static_cast<double>((i * 13 + j * 29) % size) / static_cast<double>(size) - 0.5;
  return b;
}

// Row by row, as they arrive.
void multiply(const Matrix& a, const Matrix& b, Matrix& c, std::size_t size, int times = 1) {
  for (std::size_t row = 0; row < a.size() / size; ++row)
    for (int time = 0; time < times; ++time) {
      for (std::size_t column = 0; column < size; ++column) {
        double sum = 0;
        for (std::size_t k = 0; k < size; ++k) sum += a[row * size + k] * b[column * size + k];
        c[row * size + column] = sum;
      }
      parc::examples::forget_results();
    }
}

void make_a(Matrix& a, std::size_t size, std::size_t first, int iteration) {
  for (std::size_t i = 0; i < a.size(); ++i) a[i] = element_of_a(size, iteration, first + i / size, i % size);
}

struct Slice {
  std::size_t first, rows;
};

Slice slice_of(std::size_t size, int slave, int slaves) {
  const auto s = static_cast<std::size_t>(slave), n = static_cast<std::size_t>(slaves);
  return {size * s / n, size * (s + 1) / n - size * s / n};
}

// Results of two iterations have places, so that the next ones can be asked for while the last arrive.
class Master {
public:
  Master(Context& parc, std::size_t size) : parc_(parc), size_(size), a_(size * size) {
    for (Matrix& c : c_) c.resize(size * size);
  }

  void iterate(const Options& options) {
    Matrix& c = c_[static_cast<std::size_t>(++iteration_ % 2)];
    if (!options.only_messages) make_a(a_, size_, 0, iteration_);
    if (options.alone) return;
    std::vector<parc::Operation> results;
    for (int slave = 0; slave < slaves(); ++slave)
      results.push_back(parc_.initread(slave + 1, 0, part(c, slave)));
    for (int slave = 0; slave < slaves(); ++slave) parc_.write(slave + 1, 0, part(a_, slave));
    parc_.wait_all(results);
  }

  [[nodiscard]] bool last_is_right() const {
    Matrix a(size_ * size_), c(size_ * size_);
    make_a(a, size_, 0, iteration_);
    multiply(a, make_b(size_), c, size_);
    return c == c_[static_cast<std::size_t>(iteration_ % 2)];
  }

private:
  [[nodiscard]] int slaves() const { return parc_.size() - 1; }
  [[nodiscard]] std::span<double> part(Matrix& matrix, int slave) const {
    const Slice slice = slice_of(size_, slave, slaves());
    return std::span(matrix).subspan(slice.first * size_, slice.rows * size_);
  }

  Context& parc_;
  std::size_t size_;
  Matrix a_, c_[2];
  int iteration_ = 0;
};

int run(std::size_t size, const Options& options) {
  Context parc;
  if (parc.rank() == 0) {
    Master master(parc, size);
    const auto timing = time_steps(parc, options, [&](int) { master.iterate(options); });
    return say("m3", parc, options, timing, !options.check || master.last_is_right());
  }
  const Slice slice = slice_of(size, parc.rank() - 1, parc.size() - 1);
  const Matrix b = make_b(size);
  Matrix a(slice.rows * size), c(slice.rows * size);
  const auto timing = time_steps(parc, options, [&](int step) {
    if (!options.alone) {
      auto slice_of_a = parc.initread(0, 0, std::span(a));
      parc.wait_all({slice_of_a});
    }
    if (!options.only_messages) multiply(a, b, c, size, options.times(parc.rank(), step));
    if (!options.alone) parc.write(0, 0, std::span(c));
  });
  return say("m3", parc, options, timing, true);
}

} // namespace

int main(int count, char** arguments) {
  std::size_t size = 256;
  Options options;
  const parc::examples::Program program{
      .name = "m3",
      .purpose = "A stream of matrix products: a master, and slaves that multiply",
      .sizes = {{"--size", "Rows and columns of the matrices", size, 2, 1 << 15}},
      .presets = {{"A", 1024, 400}, {"B", 2048, 40}, {"C", 4096, 20}, {"small", 256, 50}}};
  return parc::examples::run_program(program, options, count, arguments, [&] { return run(size, options); });
}
