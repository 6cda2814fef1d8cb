// SPDX-License-Identifier: BSD-3-Clause
#include "fabric/patience.hpp"

#include <boost/test/unit_test.hpp>

namespace parc::test {
namespace {

using namespace std::chrono_literals;
using fabric::Patience;
using Time = Patience::Clock::time_point;

struct Looks {
  Patience patience;
  Time now{1h};
  Patience::Clock::duration slept{};

  // Looks so often in a row, each of which takes so long and finds nothing.
  void look(int times, Patience::Clock::duration each = 500ns) {
    for (int i = 0; i < times; ++i) {
      now += each;
      const Patience::Next next = patience.looked(now);
      const Time before = now;
      now += next.sleep;
      slept += next.sleep;
      patience.done(next, before, now);
    }
  }
};

} // namespace

BOOST_AUTO_TEST_SUITE(patience)

BOOST_AUTO_TEST_CASE(looks_with_work_between_never_sleep) {
  Looks looks;
  looks.look(100'000, 3us);
  BOOST_TEST(looks.slept.count() == 0);
}

BOOST_AUTO_TEST_CASE(who_tests_many_requests_in_a_row_is_not_made_to_wait) {
  Looks looks;
  for (int step = 0; step < 1000; ++step) {
    looks.look(300);  // 150 us
    looks.now += 5ms; // of work
  }
  BOOST_TEST(looks.slept.count() == 0);
}

BOOST_AUTO_TEST_CASE(a_long_row_is_slowed_down_in_proportion) {
  for (const auto& [times, most] : {std::pair(600, 1), std::pair(1000, 1), std::pair(3000, 4)}) {
    Looks looks;
    looks.look(times);
    const auto awake = times * 500ns;
    BOOST_TEST((looks.slept <= most * awake && looks.slept >= awake / 4),
               times << ": " << looks.slept.count());
  }
}

BOOST_AUTO_TEST_CASE(who_waits_sleeps_most_of_the_time) {
  Looks looks;
  const Time began = looks.now;
  while (looks.now - began < 4s) looks.look(1);
  BOOST_TEST((looks.slept > 3980ms), looks.slept.count());
}

BOOST_AUTO_TEST_CASE(what_comes_begins_a_new_row) {
  Looks looks;
  looks.look(2'000'000);
  looks.patience.begin(looks.now);
  looks.slept = {};
  looks.look(300);
  BOOST_TEST(looks.slept.count() == 0);
}

// The core goes to others at every second look, from the second on.
BOOST_AUTO_TEST_CASE(the_core_is_offered) {
  Patience patience;
  Time now{1h};
  for (int i = 1; i < 100; ++i) {
    now += 500ns;
    const Patience::Next next = patience.looked(now);
    BOOST_TEST(next.offer_core == (i % 2 == 0));
    patience.done(next, now, now);
  }
}

BOOST_AUTO_TEST_SUITE_END()

} // namespace parc::test
