// SPDX-License-Identifier: BSD-3-Clause
#include "daemon/link/stream_count.hpp"

#include <algorithm>
#include <boost/test/unit_test.hpp>
#include <functional>

namespace parc::daemon {

BOOST_AUTO_TEST_SUITE(stream_count)

namespace {

constexpr double tick_s = 0.1;
constexpr std::uint32_t long_rtt_us = 50'000;

// A path with a backlog, whose rate depends on the streams that there are: all that are wanted.
struct Path {
  std::function<double(unsigned)> rate;
  std::uint32_t rtt_us = long_rtt_us;
  bool held_up = true;
  StreamCount count;
  unsigned run(double seconds, bool backlog = true) {
    for (double s = 0; s < seconds; s += tick_s)
      count.take({.seconds = tick_s,
                  .bytes = backlog ? static_cast<std::uint64_t>(rate(count.wanted()) * tick_s) : 0,
                  .backlog = backlog,
                  .held_up = held_up,
                  .rtt_us = rtt_us,
                  .streams = count.wanted()});
    return count.wanted();
  }
};

unsigned of_bulk(unsigned streams) { // the first one carries nothing long where there are others
  return std::max(1u, streams - 1);
}
double each_its_own(unsigned streams) {
  return 1e6 * of_bulk(streams);
}
double limited(unsigned streams) { // 1 Gbit/s, and a quarter of it for each
  return std::min(125e6, 31.25e6 * of_bulk(streams));
}
double alone(unsigned) {
  return 125e6;
}

} // namespace

BOOST_AUTO_TEST_CASE(a_short_path_has_one) {
  Path path{.rate = each_its_own, .rtt_us = 4999, .count = {}};
  BOOST_TEST(path.run(60) == 1u);
  Path unknown{.rate = each_its_own, .rtt_us = 0, .count = {}};
  BOOST_TEST(unknown.run(60) == 1u);
}

BOOST_AUTO_TEST_CASE(more_are_made_while_they_bring_more) {
  Path loss{.rate = each_its_own, .count = {}};
  BOOST_TEST(loss.run(6) == StreamCount::most);
  Path policed{.rate = limited, .count = {}};
  BOOST_TEST(policed.run(8) == 5u);
  Path clean{.rate = alone, .count = {}};
  BOOST_TEST(clean.run(8) == 1u);
}

// One that is not held up by its window fills the path: others would only begin slowly beside it.
BOOST_AUTO_TEST_CASE(those_that_fill_the_path_need_no_others) {
  Path path{.rate = each_its_own, .held_up = false, .count = {}};
  for (int i = 0; i < 600; ++i) BOOST_TEST(path.run(tick_s) == 1u);
  path.held_up = true; // it loses packets now
  BOOST_TEST(path.run(60) == StreamCount::most);
}

BOOST_AUTO_TEST_CASE(what_is_idle_needs_one) {
  Path path{.rate = each_its_own, .count = {}};
  path.run(6);
  BOOST_TEST(path.run(9, false) == StreamCount::most);
  BOOST_TEST(path.run(2, false) == 1u);
}

BOOST_AUTO_TEST_CASE(those_that_do_not_come_are_not_waited_for) {
  StreamCount count;
  for (int i = 0; i < 100; ++i)
    count.take({.seconds = tick_s, .bytes = 1000, .backlog = true, .rtt_us = long_rtt_us, .streams = 1});
  BOOST_TEST(count.wanted() == 1u);
}

// The path may be another one by then.
BOOST_AUTO_TEST_CASE(it_is_looked_at_again) {
  bool better = false;
  Path path{.rate = [&](unsigned streams) { return better ? each_its_own(streams) : 1e6; }, .count = {}};
  BOOST_TEST(path.run(20) == 1u);
  better = true;
  BOOST_TEST(path.run(40) == StreamCount::most);
}

BOOST_AUTO_TEST_SUITE_END()

} // namespace parc::daemon
