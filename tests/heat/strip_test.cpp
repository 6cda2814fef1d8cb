// SPDX-License-Identifier: BSD-3-Clause
// The solver against the formula of the paper written down a second time, and against itself cut into strips.
#include "examples/heat/run.hpp"
#include "examples/heat/strip.hpp"

#include <boost/test/unit_test.hpp>
#include <cstring>
#include <deque>
#include <fstream>

using namespace parc::heat;

namespace {

using Plate = std::vector<std::vector<double>>;

Plate initial(std::size_t columns, std::size_t points) {
  Plate plate(columns + 2, std::vector<double>(points));
  for (std::size_t x = 0; x < columns + 2; ++x)
    for (std::size_t y = 0; y < points; ++y) plate[x][y] = initial_temperature(x, y, columns, points);
  return plate;
}

// u' = u + r_x (u_left - 2u + u_right) + r_y (u_up - 2u + u_down), point by point.
Plate formula(std::size_t columns, std::size_t points, int steps) {
  Plate now = initial(columns, points);
  for (int k = 0; k < steps; ++k) {
    Plate next = now;
    for (std::size_t x = 1; x <= columns; ++x)
      for (std::size_t y = 1; y + 1 < points; ++y)
        next[x][y] = now[x][y] + r_x * (now[x - 1][y] - 2 * now[x][y] + now[x + 1][y]) +
                     r_y * (now[x][y - 1] - 2 * now[x][y] + now[x][y + 1]);
    now = std::move(next);
  }
  return now;
}

// Strips of one plate, whose borders a test carries over itself.
struct Cut {
  std::deque<Strip> strips;

  Cut(Shape shape, int ranks, double* travelling = nullptr) {
    shape.ranks = ranks;
    for (shape.rank = 0; shape.rank < ranks; ++shape.rank) {
      strips.emplace_back(shape, travelling);
      if (travelling) travelling += travelling_columns * shape.points;
    }
  }

  void step(bool borders_first, bool exchange = true) {
    for (Strip& strip : strips) {
      if (borders_first) {
        strip.calculate_borders();
        strip.calculate_interior();
      } else {
        strip.calculate_all();
      }
    }
    for (std::size_t r = 0; exchange && r + 1 < strips.size(); ++r) {
      std::memcpy(strips[r].ghost(Side::Right), strips[r + 1].border(Side::Left), strips[r].column_bytes());
      std::memcpy(strips[r + 1].ghost(Side::Left), strips[r].border(Side::Right), strips[r].column_bytes());
    }
    for (Strip& strip : strips) strip.advance();
  }

  [[nodiscard]] int wrong(int steps) const {
    int count = 0;
    for (const Strip& strip : strips) count += compare_with_sequential(strip, steps).has_value();
    return count;
  }
};

} // namespace

BOOST_AUTO_TEST_SUITE(strip)

BOOST_AUTO_TEST_CASE(solves_the_paper_s_formula) {
  Shape shape;
  shape.columns = 23;
  shape.points = 31;
  Strip strip(shape);
  for (int k = 0; k < 40; ++k) {
    strip.calculate_all();
    strip.advance();
  }
  const Plate expected = formula(23, 31, 40);
  double largest = 0;
  for (std::size_t x = 0; x < 25; ++x)
    for (std::size_t y = 0; y < 31; ++y) {
      BOOST_REQUIRE_SMALL(strip.column(x)[y] - expected[x][y], 1e-13);
      largest = std::max(largest, std::abs(expected[x][y] - initial_temperature(x, y, 23, 31)));
    }
  BOOST_TEST(largest > 0.05); // heat has moved: equality with the start would not do
}

BOOST_AUTO_TEST_CASE(rim_keeps_its_temperature) {
  Shape shape;
  shape.columns = 5;
  shape.points = 9;
  Strip strip(shape);
  for (int k = 0; k < 3; ++k) {
    strip.calculate_all();
    strip.advance();
    for (std::size_t y = 0; y < 9; ++y) {
      BOOST_TEST(strip.column(0)[y] == initial_temperature(0, y, 5, 9));
      BOOST_TEST(strip.column(6)[y] == initial_temperature(6, y, 5, 9));
    }
    for (std::size_t x = 0; x < 7; ++x) {
      BOOST_TEST(strip.column(x)[0] == initial_temperature(x, 0, 5, 9));
      BOOST_TEST(strip.column(x)[8] == initial_temperature(x, 8, 5, 9));
    }
  }
}

BOOST_AUTO_TEST_CASE(strips_agree_bit_for_bit_however_the_plate_is_cut) {
  for (const std::size_t columns : {1U, 2U, 3U, 16U}) {
    for (const int ranks : {1, 2, 3, 5}) {
      Shape shape;
      shape.columns = columns;
      shape.points = 37;
      Cut cut(shape, ranks);
      for (int k = 0; k < 11; ++k) cut.step(k % 2 == 0);
      BOOST_TEST(cut.wrong(11) == 0, columns << " columns on each of " << ranks << " ranks");
    }
  }
}

BOOST_AUTO_TEST_CASE(memory_that_travels_changes_nothing) {
  Shape shape;
  shape.columns = 4;
  shape.points = 10;
  std::vector<double> memory(2 * travelling_columns * shape.points);
  Cut cut(shape, 2, memory.data());
  const double* end = memory.data() + memory.size();
  for (int k = 0; k < 5; ++k) {
    for (Strip& strip : cut.strips)
      for (const double* place : {strip.border(Side::Left), strip.border(Side::Right),
                                  strip.ghost(Side::Left), strip.ghost(Side::Right)})
        BOOST_TEST((place >= memory.data() && place + shape.points <= end));
    cut.step(true);
  }
  BOOST_TEST(cut.wrong(5) == 0);
}

BOOST_AUTO_TEST_CASE(work_changes_the_time_only) {
  Shape shape;
  shape.columns = 3;
  shape.points = 20;
  shape.work = 7;
  Cut cut(shape, 2);
  for (int k = 0; k < 4; ++k) cut.step(true);
  BOOST_TEST(cut.wrong(4) == 0);
}

BOOST_AUTO_TEST_CASE(a_border_that_did_not_come_is_noticed) {
  Shape shape;
  shape.columns = 8;
  shape.points = 50;
  Cut cut(shape, 2);
  for (int k = 0; k < 6; ++k) cut.step(true, k != 3);
  BOOST_TEST(cut.wrong(6) == 2);
  const auto difference = compare_with_sequential(cut.strips[1], 6);
  BOOST_REQUIRE(difference.has_value());
  BOOST_TEST(difference->column >= 9U);
  BOOST_TEST(difference->here != difference->sequential);
}

BOOST_AUTO_TEST_CASE(all_ranks_write_one_field) {
  std::string path = "/tmp/parc-heat-XXXXXX";
  const int file = mkstemp(path.data());
  BOOST_REQUIRE(file >= 0);
  close(file);
  Shape shape;
  shape.columns = 3;
  shape.points = 5;
  Cut cut(shape, 2);
  cut.step(true);
  for (const Strip& strip : cut.strips) BOOST_TEST(bool(write_field(strip, path)));
  std::vector<double> plate(2 * 3 * 5 + 1);
  std::ifstream in(path, std::ios::binary);
  in.read(reinterpret_cast<char*>(plate.data()), static_cast<std::streamsize>(plate.size() * sizeof(double)));
  BOOST_TEST(in.gcount() == static_cast<std::streamsize>(30 * sizeof(double)));
  const Plate expected = formula(6, 5, 1);
  for (std::size_t x = 0; x < 6; ++x)
    for (std::size_t y = 0; y < 5; ++y) BOOST_TEST(std::abs(plate[x * 5 + y] - expected[x + 1][y]) < 1e-15);
  unlink(path.c_str());
}

BOOST_AUTO_TEST_SUITE_END()
