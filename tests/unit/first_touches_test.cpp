// SPDX-License-Identifier: BSD-3-Clause
// What order and strips suit which touches: reads of 1 MiB that come in 8 ms from the wait's return on.
#include "tools/parc/trace/first_touches.hpp"

#include <boost/test/unit_test.hpp>

namespace parc::tools {
namespace {

BOOST_AUTO_TEST_SUITE(first_touches)

constexpr std::uint64_t page = 4096, pages = 256;
constexpr double takes = 8000, wake = 10;
constexpr Machine machine{wake, page};

// So long between two touches.
Sweep sweep_of(double begin, double work, std::uint64_t first, std::uint64_t last) {
  const std::uint64_t count = (first < last ? last - first : first - last) + 1;
  return {begin, begin + work * static_cast<double>(count - 1), 0, first * page, last * page, count};
}

TouchedRead read_of(std::vector<Sweep> sweeps) {
  return {
      .released = 0, .first_byte = 0, .last_byte = takes, .bytes = pages * page, .sweeps = std::move(sweeps)};
}

// Others than these many first, and the rest in between.
std::vector<Sweep> here_and_there(double work) {
  std::vector<Sweep> sweeps;
  double time = 0;
  for (std::uint64_t i = 0; i < pages; ++i, time += work)
    sweeps.push_back(sweep_of(time, 0, i * 101 % pages, i * 101 % pages));
  return sweeps;
}

BOOST_AUTO_TEST_CASE(who_calculates_long_enough_waits_for_nothing) {
  const std::vector<TouchedRead> reads{read_of({sweep_of(1000, takes / pages, 0, pages - 1)})};
  BOOST_TEST(replay(reads, false, measured_strips, machine) == 0.0);
  BOOST_TEST((suggest(reads, machine).strip == measured_strips));
  BOOST_TEST((suggest(reads, machine).order == TouchOrder::up));
}

BOOST_AUTO_TEST_CASE(who_touches_all_at_once_waits_for_all) {
  const std::vector<TouchedRead> reads{read_of({sweep_of(0, 0, 0, pages - 1)})};
  BOOST_TEST(replay(reads, false, whole_strip, machine) == takes + wake, boost::test_tools::tolerance(1e-9));
  BOOST_TEST(replay(reads, false, measured_strips, machine) >= takes);
  const double by_pages = replay(reads, false, page, machine);
  BOOST_TEST((by_pages >= takes && by_pages <= takes + 2 * wake));
}

// As long as bytes come it calculates, but for the first strip.
BOOST_AUTO_TEST_CASE(short_strips_hide_and_whole_ones_do_not) {
  const std::vector<TouchedRead> reads{read_of({sweep_of(0, takes / pages, 0, pages - 1)})};
  BOOST_TEST(replay(reads, false, page, machine) < 0.05 * takes);
  BOOST_TEST(replay(reads, false, whole_strip, machine) >= takes);
}

BOOST_AUTO_TEST_CASE(who_touches_downwards_wants_the_last_byte_first) {
  const std::vector<TouchedRead> reads{read_of({sweep_of(0, takes / pages, pages - 1, 0)})};
  BOOST_TEST((order_of(reads) == TouchOrder::down));
  BOOST_TEST(replay(reads, false, measured_strips, machine) >= takes);
  const Suggestion suggestion = suggest(reads, machine);
  BOOST_TEST((suggestion.order == TouchOrder::down && suggestion.strip == measured_strips));
  BOOST_TEST(suggestion.waits < 0.1 * takes);
}

BOOST_AUTO_TEST_CASE(who_touches_here_and_there_promises_nothing) {
  const std::vector<TouchedRead> reads{read_of(here_and_there(1))};
  BOOST_TEST((order_of(reads) == TouchOrder::any));
  BOOST_TEST((suggest(reads, machine).order == TouchOrder::any));
}

// Slow wakes, and pages that are touched by fours far from each other: one wait costs less than many.
BOOST_AUTO_TEST_CASE(long_strips_where_waking_costs_much) {
  std::vector<Sweep> sweeps;
  for (std::uint64_t i = 0; i < 8; ++i)
    sweeps.push_back(sweep_of(0.1 * static_cast<double>(i), 0, 32 * i, 32 * i));
  const std::vector<TouchedRead> reads{read_of(sweeps)};
  constexpr Machine slow{2000, page};
  const Suggestion suggestion = suggest(reads, slow);
  BOOST_TEST(suggestion.waits <= replay(reads, false, measured_strips, slow));
  BOOST_TEST(suggestion.waits <= replay(reads, false, whole_strip, slow));
}

BOOST_AUTO_TEST_CASE(reads_that_came_at_once_or_empty_are_no_trouble) {
  TouchedRead read = read_of({sweep_of(0, 1, 0, 3)});
  read.first_byte = read.last_byte = 0;
  const std::vector<TouchedRead> reads{read, read_of({})};
  BOOST_TEST(suggest(reads, {0, page}).waits == 0.0);
  BOOST_TEST((suggest({}, machine).order == TouchOrder::any));
}

// A message that is shorter than its buffer, whose end is touched, too.
BOOST_AUTO_TEST_CASE(what_lies_behind_a_message_is_no_part_of_it) {
  TouchedRead read = read_of({sweep_of(0, 0, 4 * pages, 5 * pages), sweep_of(1, 0, 0, 2 * pages - 1)});
  read.bytes = pages * page - 100;
  const Suggestion suggestion = suggest({read}, machine);
  BOOST_TEST((suggestion.order != TouchOrder::down));
  BOOST_TEST(replay({read}, false, measured_strips, machine) <= takes + pages * wake);
  BOOST_TEST(replay({read}, true, page, machine) <= takes + pages * wake);
}

BOOST_AUTO_TEST_CASE(what_makes_no_sense_ends) {
  TouchedRead read =
      read_of({{0, 1, 0, UINT64_MAX, 0, UINT64_MAX}, {2, 1, 9, 5, 7, 0}, sweep_of(3, 0, 0, 3)});
  for (const std::uint64_t bytes : {std::uint64_t{1}, std::uint64_t{1} << 63, UINT64_MAX}) {
    read.bytes = bytes;
    BOOST_TEST(suggest({read}, {1e300, 1}).waits >= 0.0);
    BOOST_TEST(suggest({read}, machine).waits >= 0.0);
  }
}

BOOST_AUTO_TEST_SUITE_END()

} // namespace
} // namespace parc::tools
