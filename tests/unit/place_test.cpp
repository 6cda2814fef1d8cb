// SPDX-License-Identifier: BSD-3-Clause
#include "protocol/place.hpp"

#include <boost/test/unit_test.hpp>
#include <cstdlib>
#include <random>
#include <vector>

namespace parc::protocol {
namespace {

BOOST_AUTO_TEST_SUITE(place)

Place rows_at(std::uint64_t offset, std::uint64_t count, const Rows& rows) {
  return {.window = 1, .offset = offset, .length = count * rows.row, .rows = &rows};
}

BOOST_AUTO_TEST_CASE(a_span_has_all_rows) {
  const auto span = [](std::uint64_t offset, std::uint64_t count, const Rows& rows) {
    return span_of(rows_at(offset, count, rows)).value_or(Span{1, 0});
  };
  BOOST_TEST((span(100, 3, {8, 20}).low == 100 && span(100, 3, {8, 20}).high == 148));
  BOOST_TEST((span(100, 3, {8, -20}).low == 60 && span(100, 3, {8, -20}).high == 108));
  BOOST_TEST((span(100, 3, {8, 0}).low == 100 && span(100, 3, {8, 0}).high == 108));
  BOOST_TEST((span(100, 3, {8, 5}).high == 118)); // they overlap
  BOOST_TEST((span(100, 1, {8, INT64_MIN}).low == 100));
  const Place together{.window = 1, .offset = 5, .length = 7};
  BOOST_TEST((span_of(together)->low == 5 && span_of(together)->high == 12));
}

BOOST_AUTO_TEST_CASE(a_span_that_cannot_be_is_none) {
  const auto is_there = [](std::uint64_t offset, std::uint64_t count, const Rows& rows) {
    return span_of(rows_at(offset, count, rows)).has_value();
  };
  BOOST_TEST(is_there(40, 3, {8, -20}));
  BOOST_TEST(!is_there(39, 3, {8, -20}));
  BOOST_TEST(!is_there(0, 2, {8, INT64_MIN}));
  BOOST_TEST(!is_there(UINT64_MAX - 7, 2, {8, 1}));
  BOOST_TEST(!is_there(0, UINT32_MAX, {1, INT64_MAX}));
  const Place beyond{.window = 1, .offset = UINT64_MAX, .length = 1};
  BOOST_TEST(!span_of(beyond));
}

// Whatever parts the window lies in.
BOOST_AUTO_TEST_CASE(its_bytes_are_those_of_its_rows) {
  const std::uint64_t first = std::random_device()();
  std::vector<std::byte> window(4000);
  for (std::size_t i = 0; i < window.size(); ++i) window[i] = static_cast<std::byte>(i * 7 + i / 256);
  for (std::uint64_t seed = first; seed < first + 500; ++seed) {
    BOOST_TEST_CONTEXT("seed " << seed) {
      std::mt19937_64 random(seed);
      const Rows rows{1 + random() % 300, static_cast<std::int64_t>(random() % 600) - 300};
      const Place at = rows_at(random() % window.size(), 1 + random() % 20, rows);
      const auto span = span_of(at);
      if (!span || span->high > window.size()) continue;
      Pieces parts, memory;
      for (std::uint64_t from = span->low; from < span->high;) {
        const std::uint64_t n = std::min(span->high - from, 1 + random() % 1500);
        parts.append({window.data() + from, n});
        from += n;
      }
      const auto distance = static_cast<std::uint64_t>(std::abs(rows.stride));
      const bool overlap = at.length != rows.row && distance < rows.row;
      BOOST_REQUIRE(append_place(memory, parts, at) == (!overlap || parts.count() == 1));
      if (overlap && parts.count() > 1) continue;
      BOOST_REQUIRE(memory.size() == at.length);
      BOOST_TEST(memory.count() <= 4 * parts.count());
      std::vector<std::byte> wanted, got(at.length);
      for (std::uint64_t i = 0; i < at.length; ++i)
        wanted.push_back(
            window[at.offset + i / rows.row * static_cast<std::uint64_t>(rows.stride) + i % rows.row]);
      const std::uint64_t begin = random() % at.length, length = 1 + random() % (at.length - begin);
      memory.copy_out(begin, got.data() + begin, length);
      BOOST_REQUIRE(std::equal(got.begin() + static_cast<std::ptrdiff_t>(begin),
                               got.begin() + static_cast<std::ptrdiff_t>(begin + length),
                               wanted.begin() + static_cast<std::ptrdiff_t>(begin)));
    }
  }
}

// Millions of rows take no more memory than one.
BOOST_AUTO_TEST_CASE(rows_of_one_part_are_one) {
  const Rows rows{1, 2};
  Pieces memory;
  BOOST_REQUIRE(append_place(memory, Pieces(nullptr, std::uint64_t{1} << 33),
                             rows_at(0, std::uint64_t{1} << 32, rows)));
  BOOST_TEST(memory.count() == 1u);
  BOOST_TEST(memory.size() == std::uint64_t{1} << 32);
  BOOST_TEST(memory.has_short_rows());
}

BOOST_AUTO_TEST_SUITE_END()

} // namespace
} // namespace parc::protocol
