// SPDX-License-Identifier: BSD-3-Clause
#include "client/local/polling_cores.hpp"

#include <boost/test/unit_test.hpp>
#include <initializer_list>

namespace parc::test {

BOOST_AUTO_TEST_SUITE(polling_cores)

namespace {

using client::PollingCores;

cpu_set_t cores(std::initializer_list<std::size_t> which) {
  cpu_set_t set;
  CPU_ZERO(&set);
  for (const std::size_t core : which) CPU_SET(core, &set);
  return set;
}

} // namespace

BOOST_AUTO_TEST_CASE(who_shares_a_core_goes_where_nobody_polls) {
  PollingCores others;
  others.add(0, true);
  BOOST_TEST(others.better(0, cores({0, 1}), 1) == 1);
  others.add(1, true);
  BOOST_TEST(others.better(0, cores({0, 1, 2, 3}), 1) == 2);
  BOOST_TEST(others.better(0, cores({0, 1, 2, 3}), 3) == 3);
}

BOOST_AUTO_TEST_CASE(who_would_share_another_with_as_many_stays) {
  PollingCores others;
  others.add(0, true);
  others.add(1, true);
  BOOST_TEST(others.better(0, cores({0, 1}), 1) == 0);
  others.add(1, true);
  BOOST_TEST(others.better(0, cores({0, 1}), 1) == 0);
  BOOST_TEST(others.better(1, cores({0, 1}), 2) == 0);
}

BOOST_AUTO_TEST_CASE(where_a_neighbour_may_compute_comes_behind_an_idle_core) {
  PollingCores others;
  others.add(0, true);
  others.add(1, false);
  BOOST_TEST(others.better(0, cores({0, 1}), 1) == 1);
  BOOST_TEST(others.better(0, cores({0, 1, 2}), 1) == 2);
}

BOOST_AUTO_TEST_CASE(who_is_bound_stays) {
  PollingCores others;
  others.add(0, true);
  BOOST_TEST(others.better(0, cores({0}), 1) == 0);
}

// Nor is a number that a neighbour makes up looked at.
BOOST_AUTO_TEST_CASE(who_does_not_know_its_core_stays) {
  PollingCores others;
  for (const int made_up : {-1, CPU_SETSIZE, 1 << 30}) others.add(made_up, true);
  BOOST_TEST(others.better(-1, cores({0, 1}), 0) == -1);
  BOOST_TEST(others.better(0, cores({0, 1}), 1) == 0);
}

BOOST_AUTO_TEST_SUITE_END()
} // namespace parc::test
