// SPDX-License-Identifier: BSD-3-Clause
// The heat equation on one rank's strip of the plate (section 2 of Strumpen 1994): the explicit five-point
// scheme on two arrays, the temperatures of one time step and of the next.
//
//              x ->   0    1    2  ...  nx  nx+1       column 0 and nx+1: ghosts, the neighbours' borders
//           y    j=0  #    #    #       #    #         column 1 and nx:   borders, what neighbours need
//           |    1    G    B    .       B    G         #: the rim of the plate, which keeps its temperature
//           v   ny-1  #    #    #       #    #
//
// A column is contiguous in memory: a border is one message of 8 * ny bytes. The first rank's left ghost and
// the last rank's right ghost are the rim of the plate.
// Invariant: the value of a point depends on its place and on the four points around it only, never on how
// the plate is cut; so strips and the whole plate agree bit for bit.
#pragma once

#include <cstddef>
#include <vector>

namespace parc::heat {

struct Shape {
  std::size_t columns = 64;  // nx: columns of this rank, ghosts not counted
  std::size_t points = 1000; // ny: points of a column
  int ranks = 1;
  int rank = 0;
  int work = 1;         // how often each column is calculated into the same target: the same result, later
  double column_ms = 0; // what a column takes: what its calculation leaves of that is slept
  bool towards = false; // odd ranks go from right to left: two neighbours meet at their common border
};

constexpr double r_x = 0.2, r_y = 0.2; // dt/dx^2 and dt/dy^2; stable while their sum is at most 1/2

enum class Side { Left, Right };
constexpr Side sides[] = {Side::Left, Side::Right};

// Ghosts and borders of both arrays: the columns that travel.
constexpr std::size_t travelling_columns = 8;

class Strip {
public:
  // `travelling` is memory for travelling_columns columns that lives as long as the strip, from parc_alloc
  // where messages are to be moved without a copy; without it they lie beside the others.
  explicit Strip(const Shape& shape, double* travelling = nullptr);
  Strip(const Strip&) = delete;
  Strip& operator=(const Strip&) = delete;

  [[nodiscard]] const Shape& shape() const { return shape_; }
  [[nodiscard]] bool has_neighbour(Side side) const { return neighbour(side) >= 0; }
  [[nodiscard]] int neighbour(Side side) const; // its rank, -1 at the end of the plate

  // Of the time step that is being calculated: what the neighbour on that side needs, and where its own
  // border goes.
  [[nodiscard]] double* border(Side side) { return target_[side == Side::Left ? 1 : shape_.columns]; }
  [[nodiscard]] double* ghost(Side side) { return target_[side == Side::Left ? 0 : shape_.columns + 1]; }
  [[nodiscard]] std::size_t column_bytes() const { return shape_.points * sizeof(double); }

  void calculate_borders();  // the borders that a neighbour needs
  void calculate_interior(); // all other columns
  void calculate_all();
  void advance() { source_.swap(target_); } // to the next time step, when ghosts are in place

  // Temperatures of the last finished time step; column 0 to nx+1.
  [[nodiscard]] const double* column(std::size_t index) const { return source_[index]; }
  [[nodiscard]] double calculation_seconds() const { return calculation_seconds_; }

private:
  void calculate(std::size_t first, std::size_t last);

  Shape shape_;
  std::vector<double> own_; // columns that are not in `travelling`
  std::vector<double*> source_, target_;
  double calculation_seconds_ = 0;
};

// The temperature at the start, of column x (0 and columns+1 are the rim) and point y of the whole plate.
[[nodiscard]] double initial_temperature(std::size_t x, std::size_t y, std::size_t columns,
                                         std::size_t points);

} // namespace parc::heat
