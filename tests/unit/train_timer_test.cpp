// SPDX-License-Identifier: BSD-3-Clause
#include "daemon/link/train_timer.hpp"

#include <boost/test/unit_test.hpp>
#include <deque>

namespace parc::daemon {

BOOST_AUTO_TEST_SUITE(train_timer)

namespace {

using namespace std::chrono_literals;

// 10 MB/s, 20 ms: trains of 10,000 bytes, each acknowledged 20 ms after the path has taken it.
struct Path {
  TrainTimer timer;
  TrainTimer::Time now{};
  std::uint64_t sent = 0, acknowledged = 0;
  bool more = true;

  std::optional<PathSample> look() {
    return timer.take({.now = now,
                       .asked_for = sent,
                       .acknowledged = acknowledged,
                       .bytes = acknowledged * 10'000,
                       .in_flight = (sent - acknowledged) * 10'000,
                       .more = more});
  }
  // A train each millisecond, of which so many may be under way; the last sample.
  std::optional<PathSample> run(unsigned trains, std::uint64_t most_in_flight) {
    std::optional<PathSample> last;
    std::deque<TrainTimer::Time> due;
    auto free_at = now;
    for (std::uint64_t end = sent + trains; acknowledged != end;) {
      while (sent != end && sent - acknowledged < most_in_flight) {
        ++sent;
        free_at = std::max(free_at, now) + 1ms;
        due.push_back(free_at + 19ms);
      }
      if (const auto sample = look()) last = sample;
      now = due.front();
      due.pop_front();
      ++acknowledged;
      if (const auto sample = look()) last = sample;
    }
    return last;
  }
};

} // namespace

BOOST_AUTO_TEST_CASE(a_path_shows_its_round_trip_and_its_rate) {
  Path path;
  BOOST_TEST(!path.look());
  BOOST_TEST(path.timer.lowest_us() == 0u);
  path.run(1, 1);
  BOOST_TEST(path.timer.lowest_us() == 20'000u);
  const auto full = path.run(500, 40);
  BOOST_REQUIRE(full);
  BOOST_TEST(full->delivery_rate > 9'500'000u);
  BOOST_TEST(full->delivery_rate < 10'500'000u);
  BOOST_TEST(!full->application_limited);
  BOOST_TEST(full->min_rtt_us == 20'000u); // although what waits behind 20 ms of others takes 40
}

// What it shows is then what it was allowed: a half more shows whether there is more.
BOOST_AUTO_TEST_CASE(with_less_under_way_a_path_shows_less) {
  Path path;
  const auto half = path.run(500, 10);
  BOOST_REQUIRE(half);
  BOOST_TEST(half->delivery_rate > 4'500'000u);
  BOOST_TEST(half->delivery_rate < 5'500'000u);
}

BOOST_AUTO_TEST_CASE(a_pause_is_not_the_paths) {
  Path path;
  path.run(1, 1);
  path.run(100, 40);
  path.now += 10s;
  path.look();
  path.more = false;
  const auto after = path.run(20, 40);
  BOOST_REQUIRE(after);
  BOOST_TEST(after->application_limited);
  BOOST_TEST(after->min_rtt_us == 20'000u);
  BOOST_TEST(after->delivery_rate > 200'000u); // one train in its round trip, not in ten seconds
}

// Its first train may ask for nothing, and there may never have been an acknowledgement.
BOOST_AUTO_TEST_CASE(a_rate_counts_from_the_end_of_a_pause) {
  TrainTimer timer;
  TrainTimer::Time now{1h};
  BOOST_TEST(!timer.take({.now = now, .in_flight = 1'000, .more = true}));
  BOOST_TEST(!timer.take({.now = now += 1ms, .asked_for = 2, .in_flight = 201'000, .more = true}));
  const auto sample = timer.take({.now = now += 49ms, .asked_for = 2, .acknowledged = 2, .bytes = 201'000});
  BOOST_REQUIRE(sample);
  BOOST_TEST(sample->delivery_rate == 201'000u * 20);
}

BOOST_AUTO_TEST_CASE(a_round_trip_is_forgotten_after_ten_minutes) {
  TrainTimer timer;
  TrainTimer::Time now{1h};
  timer.round_trip(1ms, now, false);
  for (int minutes = 0; minutes < 4; ++minutes) timer.round_trip(50ms, now += 1min, false);
  BOOST_TEST(timer.lowest_us() == 1'000u);
  for (int minutes = 0; minutes < 60; ++minutes) timer.round_trip(50ms, now += 1min, true);
  BOOST_TEST(timer.lowest_us() == 1'000u); // what has waited takes its place not even after an hour
  for (int minutes = 0; minutes < 10; ++minutes) timer.round_trip(50ms, now += 1min, false);
  BOOST_TEST(timer.lowest_us() == 50'000u);
  timer.round_trip(0us, now, true);
  BOOST_TEST(timer.lowest_us() == 1u);
}

// The next carrier counts from what the other side has.
BOOST_AUTO_TEST_CASE(a_train_that_was_taken_back_is_not_waited_for) {
  TrainTimer timer;
  TrainTimer::Time now{1h};
  BOOST_TEST(!timer.take({.now = now, .asked_for = 9, .acknowledged = 4, .in_flight = 1}));
  BOOST_TEST(!timer.take({.now = now += 1s, .acknowledged = 4}));
  BOOST_TEST(!timer.take({.now = now += 1s, .asked_for = 6, .acknowledged = 5, .in_flight = 1}));
  BOOST_TEST(timer.take({.now = now += 1ms, .asked_for = 6, .acknowledged = 9}).has_value());
  BOOST_TEST(timer.lowest_us() == 1'000u);
}

BOOST_AUTO_TEST_SUITE_END()

} // namespace parc::daemon
