// SPDX-License-Identifier: BSD-3-Clause
// In which order the bytes of a message travel.
#include "protocol/messages.hpp"

#include <boost/test/data/test_case.hpp>
#include <boost/test/unit_test.hpp>
#include <random>

namespace parc::protocol {
namespace {

constexpr std::uint32_t fragment = 100;

struct Run {
  std::uint64_t offset;
  std::uint32_t length;
};

Run take(Grant& grant, std::uint64_t most) {
  const auto length = static_cast<std::uint32_t>(std::min(grant.run(), most));
  BOOST_REQUIRE(length != 0u);
  const Grant before = grant;
  const std::uint64_t offset = grant.take(length);
  BOOST_TEST(before.fits(offset, length));
  return {offset, length};
}

} // namespace

BOOST_AUTO_TEST_SUITE(grant)

BOOST_AUTO_TEST_CASE(the_far_end_goes_first) {
  Grant up = Grant::to_far_end(200, 1050, false, fragment);
  BOOST_TEST(!up.fits(200, fragment)); // not out of turn, nor less than all of it
  BOOST_TEST(!up.fits(950, 50));
  BOOST_TEST(take(up, 1000).offset == 950u);
  BOOST_TEST(take(up, 300).offset == 200u);
  BOOST_TEST(take(up, 1000).offset == 500u);
  BOOST_TEST(up.left() == 0u);

  Grant down = Grant::to_far_end(200, 1050, true, fragment);
  BOOST_TEST(take(down, 1000).offset == 200u);
  BOOST_TEST(take(down, 300).offset == 750u);
  BOOST_TEST(take(down, 1000).offset == 300u);
  BOOST_TEST(down.left() == 0u);
}

BOOST_AUTO_TEST_CASE(what_is_short_or_not_the_end_goes_in_order) {
  Grant few = Grant::to_far_end(0, 399, false, fragment);
  BOOST_TEST(take(few, 1000).length == 399u);
  Grant beginning = Grant::unasked(5000, 1000, false, fragment);
  BOOST_TEST(take(beginning, 1000).offset == 0u);
  Grant end = Grant::unasked(5000, 1000, true, fragment);
  BOOST_TEST(take(end, 100).offset == 4900u);
  Grant all = Grant::unasked(5000, 5000, false, fragment);
  BOOST_TEST(take(all, 1000).offset == 4900u);
}

// A connection ends after some runs, of the last of which some fragments were in place.
BOOST_DATA_TEST_CASE(what_is_put_back_is_taken_again, boost::unit_test::data::xrange(200u), seed) {
  std::mt19937 random(seed);
  const auto up_to = [&](std::uint32_t most) { return static_cast<std::uint32_t>(random() % (most + 1)); };
  const bool from_end = up_to(1) != 0;
  Grant grant = Grant::to_far_end(up_to(5) * fragment, 600 + up_to(1000), from_end, fragment);
  std::vector<bool> there(2000);
  std::uint64_t bytes = grant.left();
  while (grant.left() != 0) {
    std::vector<Run> runs;
    for (auto count = 1 + up_to(3); count != 0 && grant.left() != 0; --count)
      runs.push_back(take(grant, std::uint64_t{fragment} * (1 + up_to(3))));
    std::size_t whole = up_to(static_cast<std::uint32_t>(runs.size()));
    for (std::size_t i = runs.size(); i-- > 0;) {
      const Run& run = runs[i];
      std::uint32_t kept = i < whole ? run.length : 0;
      if (i == whole) kept = up_to(run.length / fragment) * fragment;
      for (std::uint32_t b = 0; b < kept; ++b) {
        const std::uint64_t at =
            from_end && run.length != kept ? run.offset + run.length - 1 - b : run.offset + b;
        BOOST_REQUIRE(!there[at]);
        there[at] = true;
        --bytes;
      }
      if (kept == run.length) continue;
      grant.put_back(run.offset + (from_end ? 0 : kept), run.length - kept);
    }
  }
  BOOST_TEST(bytes == 0u);
}

BOOST_AUTO_TEST_SUITE_END()

} // namespace parc::protocol
