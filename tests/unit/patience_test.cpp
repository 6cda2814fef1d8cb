// SPDX-License-Identifier: BSD-3-Clause
#include "fabric/patience.hpp"

#include <boost/test/unit_test.hpp>
#include <tuple>

namespace parc::test {

BOOST_AUTO_TEST_SUITE(patience)

namespace {

using namespace std::chrono_literals;
using fabric::Patience;
using Time = Patience::Clock::time_point;

struct Looks {
  Patience patience;
  Time now{1h};
  Patience::Clock::duration slept{};
  Patience::Clock::duration offered = 1us; // how long an offer of the core takes
  Patience::Clock::duration work{};        // in the time of each look, and not the look's own

  // Looks so often in a row, each of which takes so long and finds nothing.
  void look(int times, Patience::Clock::duration each = 500ns) {
    for (int i = 0; i < times; ++i) {
      now += each;
      const Patience::Next next = patience.looked(now, patience.is_timed() ? each - work : 0ns);
      const Time before = now;
      now += next.offer_core ? offered : next.sleep;
      slept += next.sleep;
      patience.done(next, before, now);
    }
  }
};

} // namespace

BOOST_AUTO_TEST_CASE(looks_with_work_between_never_sleep) {
  Looks looks;
  looks.look(100'000, 3us);
  BOOST_TEST(looks.slept.count() == 0);
}

// Of half a microsecond each: a library has less to do between its looks than they take, a program more.
BOOST_AUTO_TEST_CASE(who_works_for_longer_than_it_looks_never_sleeps) {
  for (const auto work : {300ns, 400ns, 200ns, 50ns}) {
    for (const auto offered : {1us, 3000us}) { // somebody computes on its core
      Looks looks;
      looks.work = work;
      looks.offered = offered;
      looks.look(1'000'000);
      BOOST_TEST((looks.slept.count() == 0) == (work > 250ns), work.count());
      looks.work = 100ns; // it has no work any more
      looks.slept = {};
      looks.look(20'000);
      BOOST_TEST(looks.slept.count() != 0, work.count());
    }
  }
}

// Now and then somebody else has its core for a moment.
BOOST_AUTO_TEST_CASE(who_works_and_is_held_up_never_sleeps) {
  for (const auto held : {5us, 20us, 90us}) {
    Looks looks;
    looks.work = 300ns;
    for (int round = 0; round < 200; ++round) {
      looks.look(5000 + round); // falls on each kind of look
      looks.work = 0ns;
      looks.look(1, held);
      looks.work = 300ns;
    }
    BOOST_TEST(looks.slept.count() == 0, held.count());
  }
}

// Its look is a call, and what the program does before that.
BOOST_AUTO_TEST_CASE(who_works_between_calls_never_sleeps) {
  for (const auto work : {50ns, 600ns}) {
    Looks looks;
    for (int i = 0; i < 100'000; ++i) {
      looks.now += work;
      const Time before = looks.now;
      looks.now += 200ns;
      looks.patience.called(before, looks.now);
      looks.look(1, 200ns);
    }
    BOOST_TEST((looks.slept.count() == 0) == (work > 500ns), work.count());
  }
}

// The first look after an offer is slower.
BOOST_AUTO_TEST_CASE(an_offer_makes_no_work_of_a_wait) {
  Looks looks;
  for (int i = 0; i < 100'000; ++i) {
    looks.look(1, i % 16 == 0 ? 1100ns : 100ns);
    looks.work = (i + 1) % 16 == 0 ? 0ns : 30ns;
  }
  BOOST_TEST(looks.slept.count() != 0);
}

BOOST_AUTO_TEST_CASE(who_tests_many_requests_in_a_row_is_not_made_to_wait) {
  Looks looks;
  for (int step = 0; step < 1000; ++step) {
    looks.look(300);  // 150 us
    looks.now += 5ms; // of work
  }
  BOOST_TEST(looks.slept.count() == 0);
}

// What it waits for may wake nobody.
BOOST_AUTO_TEST_CASE(a_row_on_a_core_of_its_own_is_late_by_a_part_of_its_age) {
  for (const auto length : {1ms, 9ms, 20ms, 100ms, 300ms}) {
    Looks looks;
    const Time began = looks.now;
    while (looks.now - began < length) looks.look(1);
    BOOST_TEST((15 * (looks.now - began) <= 16 * length), length.count());
    BOOST_TEST((2 * looks.slept <= looks.now - began || length > 10ms), length.count());
  }
}

// From one offer that took longer than a poller would have, for a moment.
BOOST_AUTO_TEST_CASE(who_computes_on_the_core_is_known_by_a_slow_offer) {
  for (const auto& [offered, later, sleeps] :
       {std::tuple(300us, 0ms, false), std::tuple(500us, 0ms, true), std::tuple(500us, 99ms, true),
        std::tuple(500us, 101ms, false)}) {
    Looks looks;
    looks.offered = offered;
    looks.look(16); // the first offer
    looks.now += later;
    looks.patience.end();
    looks.offered = 0us;
    looks.look(600); // 300 us
    BOOST_TEST((looks.slept.count() != 0) == sleeps, offered.count()
                                                         << " us, " << later.count() << " ms later");
  }
}

BOOST_AUTO_TEST_CASE(a_long_row_is_slowed_down_in_proportion_where_somebody_computes) {
  for (const auto& [times, most] : {std::pair(600, 1), std::pair(1000, 1), std::pair(3000, 4)}) {
    Looks looks;
    looks.offered = 3ms;
    looks.look(16); // the first offer
    looks.patience.end();
    looks.offered = 0us;
    looks.look(times);
    const auto awake = times * 500ns;
    BOOST_TEST((looks.slept <= most * awake && looks.slept >= awake / 4),
               times << ": " << looks.slept.count());
  }
}

BOOST_AUTO_TEST_CASE(who_waits_sleeps_most_of_the_time) {
  for (const auto offered : {1us, 3000us}) {
    Looks looks;
    looks.offered = offered;
    const Time began = looks.now;
    while (looks.now - began < 4s) looks.look(1);
    BOOST_TEST((looks.slept > 3980ms), looks.slept.count());
  }
}

BOOST_AUTO_TEST_CASE(what_comes_begins_a_new_row) {
  Looks looks;
  looks.look(2'000'000);
  looks.patience.end();
  looks.slept = {};
  looks.look(300);
  BOOST_TEST(looks.slept.count() == 0);
}

// At every sixteenth look of a row.
BOOST_AUTO_TEST_CASE(the_core_is_offered) {
  Patience patience;
  Time now{1h};
  for (int row = 0; row < 3; ++row) {
    patience.end();
    for (int i = 1; i < 100; ++i) {
      now += 500ns;
      const Patience::Next next = patience.looked(now);
      BOOST_TEST(next.offer_core == (i % 16 == 0));
      patience.done(next, now, now);
    }
  }
}

BOOST_AUTO_TEST_SUITE_END()

} // namespace parc::test
