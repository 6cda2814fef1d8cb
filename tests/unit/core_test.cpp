// SPDX-License-Identifier: BSD-3-Clause
#include "system/core.hpp"

#include <boost/test/unit_test.hpp>
#include <functional>
#include <thread>

namespace parc {
namespace {

BOOST_AUTO_TEST_SUITE(core)

// In a thread of its own: whatever becomes of where it may run, the others stay as they were.
void in_a_thread(const std::function<void()>& run) {
  std::thread(run).join();
}

cpu_set_t allowed() {
  cpu_set_t cores;
  BOOST_REQUIRE(sched_getaffinity(0, sizeof cores, &cores) == 0);
  return cores;
}

BOOST_AUTO_TEST_CASE(who_has_moved_may_run_where_it_could_before) {
  in_a_thread([] {
    const cpu_set_t before = allowed();
    for (int number = 0; number < CPU_SETSIZE; ++number)
      if (CPU_ISSET(static_cast<std::size_t>(number), &before)) move_to_core(number);
    const cpu_set_t after = allowed();
    BOOST_TEST(CPU_EQUAL(&before, &after));
  });
}

BOOST_AUTO_TEST_CASE(long_work_goes_where_somebody_rests_or_away_from_who_computes) {
  const CoreSet all(0b1111), none;
  BOOST_TEST(core_to_work_on(1, all, none, none) == 1);
  BOOST_TEST(core_to_work_on(1, all, CoreSet(0b0100), none) == 2);
  BOOST_TEST(core_to_work_on(3, all, CoreSet(0b1100), none) == 3);
  BOOST_TEST(core_to_work_on(1, all, none, CoreSet(0b0011)) == 2);
  BOOST_TEST(core_to_work_on(1, all, CoreSet(0b0100), CoreSet(0b0111)) == 3); // one rests where one computes
  BOOST_TEST(core_to_work_on(1, all, none, all) == 1);
  BOOST_TEST(core_to_work_on(1, CoreSet(0b0011), CoreSet(0b0100), CoreSet(0b0010)) == 0);
  BOOST_TEST(core_to_work_on(-1, all, all, none) == -1);
}

BOOST_AUTO_TEST_CASE(where_it_may_not_run_it_does_not_go) {
  in_a_thread([] {
    const int here = current_core();
    BOOST_REQUIRE(here >= 0);
    cpu_set_t only;
    CPU_ZERO(&only);
    CPU_SET(static_cast<std::size_t>(here), &only);
    BOOST_REQUIRE(sched_setaffinity(0, sizeof only, &only) == 0);
    for (const int other : {here == 0 ? 1 : 0, CPU_SETSIZE - 1}) {
      move_to_core(other);
      BOOST_TEST(current_core() == here);
    }
  });
}

BOOST_AUTO_TEST_SUITE_END()

} // namespace
} // namespace parc
