// SPDX-License-Identifier: BSD-3-Clause
// The flag of shm/doorbell.hpp in one thread; tests/stress tries it with many.
#include "shm/doorbell.hpp"

#include <boost/test/unit_test.hpp>

BOOST_AUTO_TEST_SUITE(doorbell)

using namespace parc::shm;

BOOST_AUTO_TEST_CASE(only_a_sleeper_is_rung_and_only_once) {
  std::atomic<std::uint32_t> asleep = 0;
  BOOST_TEST(!must_ring(asleep));
  announce_sleep(asleep);
  BOOST_TEST(must_ring(asleep));
  BOOST_TEST(!must_ring(asleep));
}

BOOST_AUTO_TEST_CASE(who_is_awake_again_is_not_rung) {
  std::atomic<std::uint32_t> asleep = 0;
  announce_sleep(asleep);
  announce_awake(asleep);
  BOOST_TEST(!must_ring(asleep));
}

BOOST_AUTO_TEST_CASE(a_deep_sleeper_is_rung_only_for_what_may_not_let_it_be) {
  std::atomic<std::uint32_t> asleep = 0;
  announce_sleep(asleep, Sleep::deep);
  BOOST_TEST(!must_ring(asleep, Sleep::light));
  BOOST_TEST(must_ring(asleep));
  announce_sleep(asleep, Sleep::light);
  BOOST_TEST(must_ring(asleep, Sleep::light));
}

BOOST_AUTO_TEST_SUITE_END()
