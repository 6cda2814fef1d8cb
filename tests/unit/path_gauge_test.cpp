// SPDX-License-Identifier: BSD-3-Clause
#include "daemon/link/path_gauge.hpp"

#include <boost/test/unit_test.hpp>

namespace parc::daemon {

BOOST_AUTO_TEST_SUITE(path_gauge)

namespace {
// 100 Mbit/s, 20 ms.
constexpr std::uint64_t wan_rate = 12'500'000;
PathSample wan(std::uint64_t bytes_in = 0) {
  return {.delivery_rate = wan_rate, .min_rtt_us = 20'000, .bytes_in = bytes_in};
}
} // namespace

BOOST_AUTO_TEST_CASE(nothing_is_known_of_a_path_without_a_rate) {
  PathGauge gauge;
  BOOST_TEST(!gauge.take({}));
  BOOST_TEST(gauge.take(wan()));
}

BOOST_AUTO_TEST_CASE(what_the_path_holds_is_under_way_and_what_it_takes_in_a_moment) {
  PathGauge gauge;
  gauge.take(wan());
  BOOST_TEST(gauge.limits().train == 12'500u);
  BOOST_TEST(gauge.limits().delay_product_kib == 250'000u / 1024);
  BOOST_TEST(gauge.limits().unsent == PathGauge::least_unsent);
  BOOST_TEST(gauge.limits().flight == 375'000u + 9'375);
}

BOOST_AUTO_TEST_CASE(the_bounds_hold_on_the_slowest_and_the_fastest_path) {
  PathGauge slow, fast;
  slow.take({.delivery_rate = 1000, .min_rtt_us = 100});
  BOOST_TEST(slow.limits().train == 1u);
  BOOST_TEST(slow.limits().unsent == PathGauge::least_unsent);
  BOOST_TEST(slow.limits().flight == PathGauge::least_flight);
  fast.take({.delivery_rate = std::uint64_t{1} << 43, .min_rtt_us = 1'000'000});
  BOOST_TEST(fast.limits().unsent == PathGauge::most_unsent);
  BOOST_TEST(fast.limits().train == 1u << 30);
  BOOST_TEST(fast.limits().delay_product_kib == 1u << 20);
}

// A program that sends little says nothing of the path; but a path may become slower.
BOOST_AUTO_TEST_CASE(what_the_program_limits_is_forgotten_slowly) {
  PathGauge gauge;
  gauge.take(wan());
  PathSample idle = wan();
  idle.delivery_rate = wan_rate / 20;
  idle.application_limited = true;
  gauge.take(idle);
  BOOST_TEST(gauge.limits().train > 12'000u);
  for (int i = 0; i < 1000; ++i) gauge.take(idle);
  BOOST_TEST(gauge.limits().train < 1'000u);
  idle.delivery_rate = 2 * wan_rate;
  gauge.take(idle);
  BOOST_TEST(gauge.limits().train == 25'000u);
  idle.application_limited = false;
  idle.delivery_rate = wan_rate / 20;
  gauge.take(idle);
  BOOST_TEST(gauge.limits().train == 625u);
}

// A header for few bytes is not worth it.
BOOST_AUTO_TEST_CASE(a_train_takes_half_a_millisecond_or_a_whole_one_of_a_slow_path) {
  const auto train_of = [](std::uint64_t rate) {
    PathGauge gauge;
    gauge.take({.delivery_rate = rate, .min_rtt_us = 100});
    return gauge.limits().train;
  };
  BOOST_TEST(train_of(wan_rate) == 12'500u);
  BOOST_TEST(train_of(50'000'000) == 32u << 10);
  BOOST_TEST(train_of(125'000'000) == 62'500u);
}

BOOST_AUTO_TEST_CASE(more_is_under_way_while_bytes_go_both_ways) {
  PathGauge gauge;
  std::uint64_t in = 0;
  constexpr std::uint64_t one_way = 375'000 + 9'375, both_ways = 2 * one_way + 100'000;
  gauge.take(wan(in += PathGauge::sample_every));
  BOOST_TEST(gauge.limits().flight == both_ways);
  for (int i = 0; i < 15; ++i) gauge.take(wan(in));
  BOOST_TEST(gauge.limits().flight == both_ways);
  gauge.take(wan(in));
  BOOST_TEST(gauge.limits().flight == one_way);
}

// A quarter faster than the path is.
BOOST_AUTO_TEST_CASE(what_goes_both_ways_leaves_evenly) {
  const auto pace_after = [](PathSample sample, int samples, bool both_ways = true) {
    PathGauge gauge;
    for (int i = 0; i < samples; ++i) {
      if (both_ways) sample.bytes_in += PathGauge::sample_every;
      gauge.take(sample);
    }
    return gauge.limits().pace;
  };
  constexpr std::uint64_t faster = wan_rate + wan_rate / 4;
  PathSample endless = wan();
  endless.unbroken = 10'000'000;
  BOOST_TEST(pace_after(endless, 31) == 0u); // the rate may still grow
  BOOST_TEST(pace_after(endless, 32) == faster);
  BOOST_TEST(pace_after(endless, 200) == faster);
  BOOST_TEST(pace_after(endless, 200, false) == 0u);
  PathSample one_of_two = endless, near = endless;
  one_of_two.streams = 2;
  near.min_rtt_us = 200;
  PathSample little = endless; // at a time
  little.unbroken = 499'999;
  BOOST_TEST(pace_after(little, 200) == 0u);
  little.unbroken = 500'000;
  BOOST_TEST(pace_after(little, 200) == faster);
  BOOST_TEST(pace_after(one_of_two, 200) == 0u);
  BOOST_TEST(pace_after(near, 200) == 0u);
}

BOOST_AUTO_TEST_CASE(a_rate_that_grows_is_not_held_back) {
  PathGauge gauge;
  PathSample sample = wan();
  sample.unbroken = 10'000'000;
  const auto take = [&](int samples) {
    for (int i = 0; i < samples; ++i) {
      sample.bytes_in += PathGauge::sample_every;
      gauge.take(sample);
    }
    return gauge.limits().pace;
  };
  (void)take(64);
  sample.delivery_rate = 2 * wan_rate;
  BOOST_TEST(take(1) == 0u);
  BOOST_TEST(take(64) == 2 * wan_rate + wan_rate / 2);
  sample.delivery_rate = wan_rate / 2; // such as slow samples
  BOOST_TEST(take(1) == 2 * wan_rate + wan_rate / 2);
  BOOST_TEST(take(64) == wan_rate / 2 + wan_rate / 8);
}

BOOST_AUTO_TEST_SUITE_END()

} // namespace parc::daemon
