// SPDX-License-Identifier: BSD-3-Clause
// cannon: a stream of matrix products C += A B by Cannon's algorithm, a square grid of ranks, OpenMP threads
// in each. Rank (i, j) holds block (i, j) of the three matrices. A product begins with a skew, which moves
// the blocks of A in row i by i places to the left and those of B in column j by j places up; in every turn
// blocks are multiplied and then move one place. So every turn but the last is followed by a shift, the last
// by the skew of the next product, and all of them can travel while the blocks of their turn are multiplied.
//   parc run -n 4 --hosts a:2,b:2 --env OMP_WAIT_POLICY=passive cannon --size 1024 --threads 2
// (Passive where threads outnumber cores: one that has no rows left would poll on, and keep the core from
// those that have some, and from the kernel.)
#include "examples/steps/steps.hpp"

#include <algorithm>
#include <iostream>
#include <utility>
#include <vector>

namespace {

using parc::Context;
using parc::examples::Options;

struct Shape {
  std::size_t size = 512; // rows and columns of the matrices
  std::size_t threads = 1;
  bool blocking = false;
};

// Small integers, so that all sums are exact in whatever order they are made.
double element_of_a(std::size_t i, std::size_t j) {
  return static_cast<double>((31 * i + 17 * j + i * j % 7) % 11) - 5;
}
double element_of_b(std::size_t i, std::size_t j) {
  return static_cast<double>((13 * i + 29 * j + i * j % 5) % 9) - 4;
}

// The ranks as a grid, row after row.
class Grid {
public:
  Grid(int rank, int ranks) : rank_(rank), ranks_(ranks) {
    while (side_ * side_ < ranks) ++side_;
  }

  [[nodiscard]] bool is_square() const { return side_ * side_ == ranks_; }
  [[nodiscard]] int side() const { return side_; }
  [[nodiscard]] int row() const { return rank_ / side_; }
  [[nodiscard]] int column() const { return rank_ % side_; }
  // The rank so many places to the right and further down, around the edges.
  [[nodiscard]] int neighbour(int right, int down) const {
    return around(row() + down) * side_ + around(column() + right);
  }

private:
  [[nodiscard]] int around(int place) const { return (place + side_) % side_; }

  int rank_, ranks_, side_ = 1;
};

// Where blocks of A or of B go to and come from.
struct Way {
  int to, from;
};

// The blocks of A or of B that one rank has: its own, the one to multiply with, and the next one, which
// arrives meanwhile.
class Operand {
public:
  enum class Move { Shift, Skew };

  // `size`: numbers in a block.
  Operand(Context& parc, int tag, std::size_t size, const Way& shift, const Way& skew)
      : parc_(parc), tag_(tag), shift_(shift), skew_(skew),
        own_(parc.buffer<double>(size)), travelling_{parc.buffer<double>(size), parc.buffer<double>(size)},
        current_(own_.span()), next_(current_) {}

  [[nodiscard]] std::span<double> own() { return own_.span(); }
  [[nodiscard]] const double* current() const { return current_.data(); }
  void advance() { current_ = next_; }

  void start(Move move, std::vector<parc::Operation>& operations) {
    const auto [way, block] = prepare(move);
    if (is_here(way)) return;
    operations.push_back(parc_.initread(way.from, tag_, next_));
    operations.push_back(parc_.initwrite(way.to, tag_, block));
  }

  // As MPI_Sendrecv: everybody writes, so each posts its read before.
  void exchange(Move move) {
    const auto [way, block] = prepare(move);
    if (is_here(way)) return;
    auto read = parc_.initread(way.from, tag_, next_);
    parc_.write(way.to, tag_, block);
    read.wait();
  }

private:
  [[nodiscard]] bool is_here(const Way& way) const { return way.from == parc_.rank(); }

  // Which block goes which way; where the next one is, or will be when it has come.
  std::pair<Way, std::span<double>> prepare(Move move) {
    const Way& way = move == Move::Shift ? shift_ : skew_;
    const std::span<double> block = move == Move::Shift ? current_ : own();
    parc::Buffer<double>& unused = travelling_[current_.data() == travelling_[0].data() ? 1 : 0];
    next_ = is_here(way) ? block : unused.span();
    return {way, block};
  }

  Context& parc_;
  int tag_;
  Way shift_, skew_;
  parc::Buffer<double> own_, travelling_[2];
  std::span<double> current_, next_;
};

// One row of C += A B: all of a tile of B's rows, which stays in the cache from row to row. Four of them at a
// time, so that an element of C is loaded and stored once for four products.
void add_row(double* c, const double* a, const double* b, std::size_t first, std::size_t last,
             std::size_t size) {
  std::size_t k = first;
  for (; k + 4 <= last; k += 4) {
    const double* const b0 = b + k * size;
    const double *const b1 = b0 + size, *const b2 = b1 + size, *const b3 = b2 + size;
    const double a0 = a[k], a1 = a[k + 1], a2 = a[k + 2], a3 = a[k + 3];
    for (std::size_t j = 0; j < size; ++j) c[j] += a0 * b0[j] + a1 * b1[j] + a2 * b2[j] + a3 * b3[j];
  }
  for (; k < last; ++k)
    for (std::size_t j = 0; j < size; ++j) c[j] += a[k] * b[k * size + j];
}

void multiply(std::vector<double>& c, const double* a, const double* b, std::size_t size,
              std::size_t threads) {
  const std::size_t tile = std::max<std::size_t>(4, (std::size_t{128} << 10) / (size * sizeof(double)));
  const auto team = static_cast<int>(threads);
#pragma omp parallel for num_threads(team) schedule(static)
  for (std::size_t part = 0; part < threads; ++part)
    for (std::size_t k = 0; k < size; k += tile)
      for (std::size_t i = size * part / threads; i < size * (part + 1) / threads; ++i)
        add_row(c.data() + i * size, a + i * size, b, k, std::min(k + tile, size), size);
}

// What one rank does.
class Multiplication {
  using Move = Operand::Move;

public:
  Multiplication(Context& parc, const Grid& grid, const Shape& shape, const Options& options)
      : parc_(parc), grid_(grid), options_(options), threads_(shape.threads), blocking_(shape.blocking),
        block_(shape.size / static_cast<std::size_t>(grid.side())), c_(block_ * block_),
        a_(parc, 0, block_ * block_, {grid.neighbour(-1, 0), grid.neighbour(1, 0)},
           {grid.neighbour(-grid.row(), 0), grid.neighbour(grid.row(), 0)}),
        b_(parc, 1, block_ * block_, {grid.neighbour(0, -1), grid.neighbour(0, 1)},
           {grid.neighbour(0, -grid.column()), grid.neighbour(0, grid.column())}) {
    for (std::size_t i = 0; i < block_; ++i)
      for (std::size_t j = 0; j < block_; ++j) {
        a_.own()[i * block_ + j] = element_of_a(row() + i, column() + j);
        b_.own()[i * block_ + j] = element_of_b(row() + i, column() + j);
      }
    exchange(Move::Skew);
    a_.advance();
    b_.advance();
  }

  void multiply_all(int step) {
    if (step == options_.warm_up) wait_s_ = multiply_s_ = 0;
    const int times = options_.only_messages ? 0 : options_.times(parc_.rank(), step);
    products_ += times;
    for (int turn = 1; turn <= grid_.side(); ++turn)
      take_turn(turn < grid_.side() ? Move::Shift : Move::Skew, times);
  }

  [[nodiscard]] double wait_ms() const { return wait_s_ * 1e3 / options_.steps; }
  [[nodiscard]] double multiply_ms() const { return multiply_s_ * 1e3 / options_.steps; }

  // Compares with a plain product of the matrices' rows and columns that meet here.
  [[nodiscard]] bool is_right() const {
    const std::size_t size = block_ * static_cast<std::size_t>(grid_.side());
    std::vector<double> b(size * block_), sums(block_);
    for (std::size_t k = 0; k < size; ++k)
      for (std::size_t j = 0; j < block_; ++j) b[k * block_ + j] = element_of_b(k, column() + j);
    for (std::size_t i = 0; i < block_; ++i) {
      std::fill(sums.begin(), sums.end(), 0);
      for (std::size_t k = 0; k < size; ++k) {
        const double a = products_ * element_of_a(row() + i, k);
        for (std::size_t j = 0; j < block_; ++j) sums[j] += a * b[k * block_ + j];
      }
      if (!std::equal(sums.begin(), sums.end(), c_.data() + i * block_)) return false;
    }
    return true;
  }

private:
  // The first row and column of the rank's blocks.
  [[nodiscard]] std::size_t row() const { return block_ * static_cast<std::size_t>(grid_.row()); }
  [[nodiscard]] std::size_t column() const { return block_ * static_cast<std::size_t>(grid_.column()); }

  void take_turn(Move move, int times) {
    std::vector<parc::Operation> moves;
    const double begin = parc_clock();
    if (!blocking_) start(move, moves);
    const double started = parc_clock();
    for (int i = 0; i < times; ++i) multiply(c_, a_.current(), b_.current(), block_, threads_);
    const double multiplied = parc_clock();
    if (blocking_) exchange(move);
    parc_.wait_all(moves);
    a_.advance();
    b_.advance();
    multiply_s_ += multiplied - started;
    wait_s_ += parc_clock() - multiplied + started - begin;
  }

  void start(Move move, std::vector<parc::Operation>& moves) {
    if (options_.alone) return;
    for (Operand* operand : {&a_, &b_}) operand->start(move, moves);
  }
  void exchange(Move move) {
    if (options_.alone) return;
    for (Operand* operand : {&a_, &b_}) operand->exchange(move);
  }

  Context& parc_;
  const Grid grid_;
  const Options& options_;
  const std::size_t threads_;
  const bool blocking_;
  const std::size_t block_; // rows and columns of a block
  std::vector<double> c_;   // the sum of all products
  Operand a_, b_;
  int products_ = 0;
  double wait_s_ = 0, multiply_s_ = 0;
};

// A rank that ends so ends the job: not before the first one has said why.
int refuse(Context& parc, const std::string& why) {
  if (parc.rank() == 0) std::cerr << "cannon: " + why + "\n";
  parc.barrier();
  return 2;
}

int run(const Shape& shape, const Options& options) {
  Context parc;
  const Grid grid(parc.rank(), parc.size());
  if (!grid.is_square())
    return refuse(parc, std::to_string(parc.size()) + " ranks are no square grid; start 1, 4, 9 or 16");
  if (shape.size % static_cast<std::size_t>(grid.side()) != 0)
    return refuse(parc, "a matrix of " + std::to_string(shape.size) + " rows cannot be cut into " +
                            std::to_string(grid.side()) + " equal parts; choose --size so that it can");
  Multiplication multiplication(parc, grid, shape, options);
  auto timing = time_steps(parc, options, [&](int step) { multiplication.multiply_all(step); });
  timing.parts = {{"wait", multiplication.wait_ms()}, {"multiply", multiplication.multiply_ms()}};
  return say("cannon", parc, options, timing, !options.check || multiplication.is_right());
}

} // namespace

int main(int count, char** arguments) {
  Shape shape;
  Options options;
  const parc::examples::Program program{
      .name = "cannon",
      .purpose = "Matrix products by Cannon's algorithm on a square grid of ranks",
      .sizes = {{"--size", "Rows and columns of the matrices", shape.size, 1, 1 << 15},
                {"--threads", "OpenMP threads of each rank", shape.threads, 1, 1 << 10}},
      .flags = {
          {"--blocking", "Exchange blocks when they are multiplied, with calls that block", shape.blocking}}};
  return parc::examples::run_program(program, options, count, arguments, [&] { return run(shape, options); });
}
