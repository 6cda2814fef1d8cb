// SPDX-License-Identifier: BSD-3-Clause
#include "daemon/job/departures.hpp"

#include <boost/test/unit_test.hpp>
#include <set>

BOOST_AUTO_TEST_SUITE(departures)

using parc::daemon::Departures;

namespace {

std::optional<std::uint32_t> first(const Departures& departures, const std::set<std::uint32_t>& failed) {
  return departures.first([&](std::uint32_t rank) { return failed.contains(rank); });
}

void heard(Departures& departures, std::uint32_t rank, const std::vector<std::uint64_t>& known = {}) {
  departures.heard(rank, known);
}

} // namespace

BOOST_AUTO_TEST_CASE(the_first_heard_of_where_none_knew_of_another) {
  Departures all({0, 1, 2});
  BOOST_TEST(!first(all, {0, 1, 2}).has_value());
  heard(all, 2);
  heard(all, 0);
  heard(all, 1);
  BOOST_TEST(first(all, {0, 1, 2}).value() == 2U);
  BOOST_TEST(first(all, {0, 1}).value() == 0U);
  BOOST_TEST(!first(all, {}).has_value());
}

BOOST_AUTO_TEST_CASE(one_that_was_known_came_before) {
  Departures all({0, 1});
  heard(all, 1, {0});
  BOOST_TEST(first(all, {1}).value() == 1U);
  heard(all, 0);
  BOOST_TEST(first(all, {0, 1}).value() == 0U);
}

// Rank 5's host has heard of rank 3's end alone, and that of rank 0 is heard of last.
BOOST_AUTO_TEST_CASE(through_several_hosts_and_ranks_that_did_not_fail) {
  Departures all({0, 1, 1, 1, 2, 2});
  heard(all, 5, {3});
  heard(all, 2, {0});
  heard(all, 3);
  heard(all, 0);
  BOOST_TEST(first(all, {0, 5}).value() == 0U);
  BOOST_TEST(first(all, {2, 5}).value() == 2U);
  BOOST_TEST(first(all, {0, 2, 3, 5}).value() == 0U);
  BOOST_TEST(first(all, {4, 5}).value() == 5U);
}

BOOST_AUTO_TEST_CASE(what_a_host_hears_later_is_not_before) {
  Departures all({0, 0, 1});
  heard(all, 0);
  heard(all, 1, {2});
  heard(all, 2);
  BOOST_TEST(first(all, {0, 2}).value() == 0U);
  BOOST_TEST(first(all, {1, 2}).value() == 2U);
}

BOOST_AUTO_TEST_CASE(only_the_first_time_counts) {
  Departures all({0, 1});
  heard(all, 0);
  heard(all, 1);
  heard(all, 0, {1});
  BOOST_TEST(first(all, {0, 1}).value() == 0U);
}

BOOST_AUTO_TEST_CASE(nonsense_is_no_harm) {
  Departures all({0, 0, 1});
  heard(all, 0, {7, 1, 0, UINT64_MAX});
  heard(all, 2);
  BOOST_TEST(first(all, {0, 1, 2}).value() == 0U);
}

BOOST_AUTO_TEST_CASE(hosts_that_contradict_each_other_are_no_harm) {
  Departures all({0, 1});
  heard(all, 0, {1});
  heard(all, 1, {0});
  BOOST_TEST(first(all, {0, 1}).has_value());
}

BOOST_AUTO_TEST_SUITE_END()
