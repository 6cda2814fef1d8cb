// SPDX-License-Identifier: BSD-3-Clause
#include "client/local/cell_shares.hpp"

#include <boost/test/unit_test.hpp>

BOOST_AUTO_TEST_SUITE(cell_shares)

using parc::client::CellShares;

namespace {

// Until it gets no more, or has `most`.
std::uint64_t fill(CellShares& shares, std::uint64_t most = UINT64_MAX) {
  std::uint64_t in_flight = 0;
  while (in_flight != most && shares.may_take(in_flight)) shares.took(in_flight++);
  return in_flight;
}

} // namespace

BOOST_AUTO_TEST_CASE(one_pair_alone_has_most_of_them_and_never_all) {
  CellShares shares;
  const std::uint64_t all = fill(shares);
  BOOST_TEST(all > parc::shm::most_published / 2);
  BOOST_TEST(all < parc::shm::most_published);
  BOOST_TEST(shares.may_take(0)); // another pair
}

BOOST_AUTO_TEST_CASE(each_pair_gets_on_whatever_the_others_have) {
  CellShares shares;
  for (std::uint32_t pair = 1; pair < CellShares::kept; ++pair) BOOST_TEST(fill(shares) != 0u);
  for (int round = 0; round < 1000; ++round) { // the last one, whose receiver drains
    BOOST_REQUIRE(shares.may_take(0));
    shares.took(0);
    shares.gave(0);
  }
}

BOOST_AUTO_TEST_CASE(what_one_pair_gives_back_others_may_have) {
  CellShares shares;
  std::uint64_t first = fill(shares);
  const std::uint64_t beside = fill(shares);
  while (first != 0) shares.gave(--first);
  CellShares alone;
  std::uint64_t second = beside;
  while (shares.may_take(second)) shares.took(second++);
  BOOST_TEST(second > beside);
  BOOST_TEST(second == fill(alone));
}

BOOST_AUTO_TEST_CASE(every_cell_has_an_owner_where_there_are_many_pairs) {
  CellShares shares;
  std::uint64_t taken = 0;
  for (std::uint32_t pair = 0; pair < parc::shm::most_published; ++pair) taken += fill(shares, 1);
  BOOST_TEST(taken == parc::shm::most_published);
  BOOST_TEST(!shares.may_take(0));
}

BOOST_AUTO_TEST_SUITE_END()
