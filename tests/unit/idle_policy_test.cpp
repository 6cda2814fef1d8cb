// SPDX-License-Identifier: BSD-3-Clause
#include "daemon/base/idle_policy.hpp"

#include "daemon/base/loop.hpp"

#include <boost/test/unit_test.hpp>

namespace parc::daemon {

BOOST_AUTO_TEST_SUITE(idle_policy)

namespace {

// Of a kernel that always has something to do when it is about to sleep, so that it never blocks here.
struct Idle {
  Loop loop;
  SchedulingClass scheduling = SchedulingClass::acquire(RealtimePolicy::Off).value();
  bool bursts = true;
  int announced = 0;
  IdlePolicy policy{loop.events(), scheduling, std::chrono::microseconds(0),
                    IdlePolicy::Needs{.spinning = [] { return false; },
                                      .bursts = [this] { return bursts; },
                                      .asks = [] { return true; }, // it does not linger
                                      .ready = [] { return true; },
                                      .announce_sleep = [this] { ++announced; },
                                      .announce_awake = [] {}}};
  [[nodiscard]] std::uint64_t naps() const { return policy.counters().naps; }
};

} // namespace

BOOST_FIXTURE_TEST_CASE(in_a_burst_it_naps_for_as_long_as_naps_find_something, Idle) {
  for (int i = 1; i <= 10; ++i) {
    policy.after(0);
    policy.after(1);
    BOOST_TEST(naps() == static_cast<std::uint64_t>(i));
  }
  BOOST_TEST(announced == 0);
}

BOOST_FIXTURE_TEST_CASE(behind_a_nap_that_found_nothing_it_sleeps, Idle) {
  policy.after(0);
  policy.after(0);
  BOOST_TEST(naps() == 1U);
  BOOST_TEST(announced == 1);
  policy.after(0); // and it naps no more until it has slept
  BOOST_TEST(naps() == 1U);
  BOOST_TEST(announced == 2);
}

BOOST_FIXTURE_TEST_CASE(who_asks_now_and_then_is_not_napped_for, Idle) {
  bursts = false;
  for (int i = 0; i < 10; ++i) policy.after(0);
  BOOST_TEST(naps() == 0U);
  BOOST_TEST(announced == 10);
}

BOOST_AUTO_TEST_SUITE_END()

} // namespace parc::daemon
