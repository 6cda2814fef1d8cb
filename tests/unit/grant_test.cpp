// SPDX-License-Identifier: BSD-3-Clause
// In which order the bytes of a message travel.
#include "protocol/messages.hpp"

#include <boost/test/data/test_case.hpp>
#include <boost/test/unit_test.hpp>
#include <random>

namespace parc::protocol {

BOOST_AUTO_TEST_SUITE(grant)

namespace {

constexpr std::uint32_t fragment = 2048, page = Grant::page;

struct Run {
  std::uint64_t offset;
  std::uint32_t length;
  bool from_above;
};

Run take(Grant& grant, std::uint64_t most) {
  const auto length = static_cast<std::uint32_t>(std::min(grant.run(), most));
  BOOST_REQUIRE(length != 0u);
  const Grant before = grant;
  const std::uint64_t offset = grant.take(length);
  BOOST_TEST(before.fits(offset, length));
  return {offset, length, before.from_above()};
}

} // namespace

BOOST_AUTO_TEST_CASE(the_far_end_goes_first) {
  const std::uint64_t low = fragment, high = 10 * page + 5, all = UINT32_MAX;
  Grant up = Grant::to_far_end(low, high, false, fragment);
  BOOST_TEST(!up.fits(low, fragment)); // not out of turn
  BOOST_TEST(take(up, all).offset == high - page);
  BOOST_TEST(take(up, 3 * fragment).offset == low);
  BOOST_TEST(take(up, all).offset == low + 3 * fragment);
  BOOST_TEST(up.left() == 0u);

  Grant down = Grant::to_far_end(low, high, true, fragment);
  BOOST_TEST(take(down, fragment).offset == low); // a part of it
  BOOST_TEST(take(down, all).offset == low + fragment);
  BOOST_TEST(take(down, 3 * fragment).offset == high - 3 * fragment);
  BOOST_TEST(take(down, all).offset == low + page);
  BOOST_TEST(down.left() == 0u);
}

BOOST_AUTO_TEST_CASE(what_is_short_or_not_the_end_goes_in_order) {
  Grant few = Grant::to_far_end(0, 4 * page - 1, false, fragment);
  BOOST_TEST(take(few, 5 * page).length == 4 * page - 1);
  Grant beginning = Grant::unasked(50 * page, 10 * page, false, fragment);
  BOOST_TEST(take(beginning, page).offset == 0u);
  Grant end = Grant::unasked(50 * page, 10 * page, true, fragment);
  BOOST_TEST(take(end, page).offset == 49 * page);
  Grant all = Grant::unasked(50 * page, 50 * page, false, fragment);
  BOOST_TEST(take(all, 10 * page).offset == 49 * page);
}

// A connection ends after some runs, of the last of which some fragments were in place.
BOOST_DATA_TEST_CASE(what_is_put_back_is_taken_again, boost::unit_test::data::xrange(300u), seed) {
  std::mt19937 random(seed);
  const auto up_to = [&](std::uint32_t most) { return static_cast<std::uint32_t>(random() % (most + 1)); };
  const bool from_end = up_to(1) != 0;
  const std::uint32_t low = up_to(5) * fragment;
  Grant grant = Grant::to_far_end(low, low + 4 * page + up_to(10 * page), from_end, fragment);
  std::vector<bool> there(20 * page);
  std::uint64_t bytes = grant.left();
  while (grant.left() != 0) {
    std::vector<Run> runs;
    for (auto count = 1 + up_to(3); count != 0 && grant.left() != 0; --count)
      runs.push_back(take(grant, std::uint64_t{fragment} * (1 + up_to(5))));
    const std::size_t whole = up_to(static_cast<std::uint32_t>(runs.size()));
    for (std::size_t i = runs.size(); i-- > 0;) {
      const Run& run = runs[i];
      std::uint32_t kept = i < whole ? run.length : 0;
      if (i == whole) kept = up_to(run.length / fragment) * fragment;
      const std::uint64_t first = run.from_above ? run.offset + run.length - kept : run.offset;
      for (std::uint64_t at = first; at < first + kept; ++at) {
        BOOST_REQUIRE(!there[at]);
        there[at] = true;
        --bytes;
      }
      if (kept != run.length) grant.put_back(run.length - kept, run.from_above);
    }
  }
  BOOST_TEST(bytes == 0u);
}

BOOST_AUTO_TEST_SUITE_END()

} // namespace parc::protocol
