// SPDX-License-Identifier: BSD-3-Clause
#include "shm/between.hpp"

#include <algorithm>
#include <boost/test/unit_test.hpp>
#include <random>
#include <vector>

namespace parc::shm {

BOOST_AUTO_TEST_SUITE(between)

BOOST_AUTO_TEST_CASE(a_word_tells_of_the_grains_that_are_there_whole) {
  std::mt19937_64 random(1);
  for (int i = 0; i < 100'000; ++i) {
    const std::uint64_t room = 1 + (random() >> (16 + random() % 48)), grain = grain_of(room);
    std::uint64_t end = 0, told_end = 0, told = 0, told_within = 0, there = 0;
    std::vector<protocol::Span> spans(random() % 40);
    for (protocol::Span& span : spans) {
      const std::uint64_t most = 1 + (room - end) / (1 + random() % 8);
      span.low = std::min(end + random() % most, room);
      span.high = std::min(span.low + random() % most, room);
      end = span.high;
      const std::uint64_t first = (span.low + grain - 1) / grain, behind = span.high / grain;
      if (behind > first) there += (behind - first) * grain;
    }
    const std::int32_t word = between_word(spans, room);
    const std::uint64_t from = random() % room, to = from + random() % (room - from);
    each_between(word, room, [&](std::uint64_t low, std::uint64_t high) {
      BOOST_REQUIRE((low < high && low >= told_end && high <= room));
      told_end = high;
      told += high - low;
      if (low < to && from < high) told_within += std::min(high, to) - std::max(low, from);
      for (; low < high; low += grain)
        BOOST_REQUIRE(std::ranges::any_of(
            spans, [&](const protocol::Span& span) { return span.low <= low && low + grain <= span.high; }));
    });
    BOOST_REQUIRE_EQUAL(told, there);
    BOOST_REQUIRE_EQUAL(bytes_between(word, room, from, to), told_within);
    BOOST_REQUIRE_EQUAL(bytes_between(word, room, 0, room), told);
  }
}

BOOST_AUTO_TEST_CASE(no_error_is_a_word) {
  for (std::int32_t error = -1000; error <= 0; ++error)
    each_between(error, std::uint64_t{1} << 40, [](auto, auto) { BOOST_REQUIRE(false); });
}

BOOST_AUTO_TEST_SUITE_END()

} // namespace parc::shm
