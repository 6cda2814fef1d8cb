// SPDX-License-Identifier: BSD-3-Clause
#include "shm/between.hpp"

#include <boost/test/unit_test.hpp>
#include <random>

namespace parc::shm {

BOOST_AUTO_TEST_SUITE(between)

BOOST_AUTO_TEST_CASE(a_word_tells_of_the_grains_that_are_there_whole) {
  std::mt19937_64 random(1);
  for (int i = 0; i < 100'000; ++i) {
    const std::uint64_t room = 1 + (random() >> (16 + random() % 48)), grain = grain_of(room);
    std::int32_t word = 0;
    std::uint64_t end = 0, told_end = 0, told = 0, there = 0;
    std::uint64_t lows[4], highs[4];
    for (int k = 0; k < 4; ++k) {
      lows[k] = end + random() % (room - end + 1);
      highs[k] = lows[k] + random() % (room - lows[k] + 1);
      end = highs[k];
      word = with_between(word, lows[k], highs[k], room);
      const std::uint64_t first = (lows[k] + grain - 1) / grain, behind = highs[k] / grain;
      if (behind > first) there += (behind - first) * grain;
    }
    each_between(word, room, [&](std::uint64_t low, std::uint64_t high) {
      BOOST_REQUIRE((low < high && low >= told_end && high <= room));
      told_end = high;
      told += high - low;
      for (; low < high; low += grain) {
        bool whole = false;
        for (int k = 0; k < 4; ++k) whole = whole || (lows[k] <= low && low + grain <= highs[k]);
        BOOST_REQUIRE(whole);
      }
    });
    BOOST_REQUIRE_EQUAL(told, there);
  }
}

BOOST_AUTO_TEST_CASE(no_error_is_a_word) {
  for (std::int32_t error = -1000; error <= 0; ++error)
    each_between(error, std::uint64_t{1} << 40, [](auto, auto) { BOOST_REQUIRE(false); });
}

BOOST_AUTO_TEST_SUITE_END()

} // namespace parc::shm
