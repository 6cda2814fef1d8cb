// SPDX-License-Identifier: BSD-3-Clause
#include "daemon/base/loop.hpp"

#include <boost/test/unit_test.hpp>

namespace parc::daemon {

BOOST_AUTO_TEST_SUITE(loop)

namespace {

using namespace std::chrono_literals;

struct InVirtualTime {
  Loop::Time time{};
  Loop loop{&time};
  std::string rung;
  Timer a{loop, [this] { rung += 'a'; }}, b{loop, [this] { rung += 'b'; }}, c{loop, [this] { rung += 'c'; }};

  void wait(std::chrono::milliseconds span) {
    time += span;
    loop.ring();
  }
};

} // namespace

BOOST_FIXTURE_TEST_CASE(timers_ring_in_the_order_of_their_times, InVirtualTime) {
  BOOST_TEST(!loop.next_timer().has_value());
  a.set(0.2);
  b.set(0.1);
  c.set(0.1);
  BOOST_TEST((loop.next_timer() == time + 100ms));
  wait(99ms);
  BOOST_TEST(rung == "");
  wait(1ms);
  BOOST_TEST(rung == "bc");
  wait(1s);
  BOOST_TEST(rung == "bca");
  BOOST_TEST(!loop.next_timer().has_value());
}

BOOST_FIXTURE_TEST_CASE(a_timer_that_is_moved_or_canceled_does_not_ring_at_its_old_time, InVirtualTime) {
  a.set(0.1);
  a.set(0.3);
  b.set(0.2);
  b.cancel();
  {
    Timer gone(loop, [this] { rung += '!'; }), also(loop, [] {});
    gone.set(0.1);
  }
  wait(250ms);
  BOOST_TEST(rung == "");
  wait(50ms);
  BOOST_TEST(rung == "a");
}

BOOST_FIXTURE_TEST_CASE(what_a_timer_does_to_timers_holds_at_once, InVirtualTime) {
  Timer first(loop, [this] {
    b.cancel();
    c.set(0.05);
  });
  first.set(0.1);
  b.set(0.1);
  c.set(0.1);
  wait(100ms);
  BOOST_TEST(rung == "");
  wait(50ms);
  BOOST_TEST(rung == "c");
}

BOOST_FIXTURE_TEST_CASE(one_that_sets_itself_for_now_rings_once_a_round, InVirtualTime) {
  unsigned rounds = 0;
  Timer again(loop, [&] { ++rounds, again.set(0); });
  again.set(0);
  for (unsigned round = 1; round <= 3; ++round) {
    loop.ring();
    BOOST_TEST(rounds == round);
  }
}

BOOST_AUTO_TEST_CASE(with_the_system_s_clock_they_ring_from_the_event_base) {
  Loop loop;
  std::string rung;
  Timer late(loop, [&] { rung += 'l'; }), soon(loop, [&] { rung += 's'; }), never(loop, [&] { rung += 'n'; });
  late.set(0.02);
  never.set(0.001);
  soon.set(0.01);
  never.cancel();
  while (loop.next_timer()) event_base_loop(loop.events(), EVLOOP_ONCE);
  BOOST_TEST(rung == "sl");
}

BOOST_AUTO_TEST_SUITE_END()

} // namespace parc::daemon
