// SPDX-License-Identifier: BSD-3-Clause
// A link under a clock that the test turns: when packets are due, what is dropped, what a change does.
#include "tools/wanlink/link.hpp"

#include <boost/test/unit_test.hpp>

using namespace parc::wanlink;

namespace {

constexpr Nanoseconds ms = 1'000'000;
constexpr std::uint64_t mbit = 1'000'000;

struct Fixture {
  PacketStore store;
  Random random{7};

  bool offer(Link& link, Nanoseconds now, std::uint32_t bytes = 1250, std::uint32_t packets = 1) {
    (void)store.room();
    return link.offer(store.take(bytes), {.host = 1, .wire_packets = packets, .wire_bytes = bytes}, now,
                      random);
  }
  static std::vector<Nanoseconds> drain(Link& link) {
    std::vector<Nanoseconds> times;
    while (!link.empty()) {
      times.push_back(link.front().due);
      link.delivered(link.front().due);
    }
    return times;
  }
};

using Times = std::vector<Nanoseconds>;

} // namespace

BOOST_FIXTURE_TEST_SUITE(one_direction, Fixture)

BOOST_AUTO_TEST_CASE(serializes_and_delays) {
  // 1250 bytes at 100 Mbit/s are 0.1 ms.
  Link link({.delay_ns = 10 * ms, .rate = 100 * mbit});
  BOOST_TEST(offer(link, 0));
  BOOST_TEST(!offer(link, 0)); // behind the first: no news for the schedule
  offer(link, 5 * ms);         // the wire is idle again
  BOOST_TEST(drain(link) == (Times{10 * ms + ms / 10, 10 * ms + ms / 5, 15 * ms + ms / 10}),
             boost::test_tools::per_element());
  BOOST_TEST(link.counters().packets == 3U);
  BOOST_TEST(link.counters().bytes == 3U * 1250);
}

BOOST_AUTO_TEST_CASE(unlimited_rate_only_delays) {
  Link link({.delay_ns = ms});
  for (int i = 0; i < 3; ++i) offer(link, i);
  BOOST_TEST(drain(link) == (Times{ms, ms + 1, ms + 2}), boost::test_tools::per_element());
}

// At 10 Mbit/s 1250 bytes take 1 ms, of each connection on its own.
BOOST_AUTO_TEST_CASE(a_connection_has_a_rate_of_its_own) {
  Link link({.queue = 5000, .connection_rate = 10 * mbit});
  const auto send = [&](std::uint32_t ports, Nanoseconds now) {
    (void)store.room();
    const auto before = link.in_flight();
    link.offer(store.take(1250), {.host = 1, .wire_bytes = 1250, .ports = ports}, now, random);
    return link.in_flight() != before;
  };
  for (int i = 0; i < 5; ++i) BOOST_TEST(send(1, 0));
  BOOST_TEST(!send(1, 0));
  BOOST_TEST(send(2, 0));
  BOOST_TEST(send(0, 0)); // no connection
  BOOST_TEST(send(1, 2 * ms));
  BOOST_TEST(link.counters().dropped_queue == 1u);
  for (const Nanoseconds due : drain(link)) BOOST_TEST(due <= 2 * ms);
}

// A large segment by its packets.
BOOST_AUTO_TEST_CASE(what_is_too_large_is_lost) {
  Link link({.largest_packet = 1200});
  const auto send = [&](std::uint32_t largest, std::uint32_t packets) {
    (void)store.room();
    const auto before = link.in_flight();
    const PacketFacts facts{.host = 1,
                            .wire_packets = packets,
                            .wire_bytes = largest * (packets - 1) + 100,
                            .largest_wire = largest};
    link.offer(store.take(64), facts, 0, random);
    return link.in_flight() != before;
  };
  BOOST_TEST(send(1200, 1));
  BOOST_TEST(!send(1201, 1));
  BOOST_TEST(send(1200, 3));
  BOOST_TEST(!send(1500, 3));
  BOOST_TEST(link.counters().dropped_loss == 4u);
}

BOOST_AUTO_TEST_CASE(drops_what_the_queue_cannot_hold) {
  Link link({.rate = 100 * mbit, .queue = 5000});
  for (int i = 0; i < 10; ++i) offer(link, 0);
  BOOST_TEST(link.in_flight() == 4U);
  BOOST_TEST(link.counters().dropped_queue == 6U);
  BOOST_TEST(link.backlog(0) == 5000U);
  offer(link, ms / 10); // one has left
  BOOST_TEST(link.in_flight() == 5U);
}

BOOST_AUTO_TEST_CASE(an_idle_wire_takes_a_packet_larger_than_the_queue) {
  Link link({.rate = 100 * mbit, .queue = 1000});
  offer(link, 0);
  BOOST_TEST(link.in_flight() == 1U);
}

BOOST_AUTO_TEST_CASE(loses_its_share) {
  Link link({.loss = 0.25});
  for (int i = 0; i < 4000; ++i) offer(link, i);
  BOOST_TEST(link.counters().dropped_loss > 900U);
  BOOST_TEST(link.counters().dropped_loss < 1100U);
  Link certain({.loss = 1});
  offer(certain, 0);
  BOOST_TEST(certain.empty());
}

BOOST_AUTO_TEST_CASE(jitter_stays_in_its_range_and_keeps_order) {
  Link link({.delay_ns = 10 * ms, .jitter_ns = 2 * ms});
  for (int i = 0; i < 1000; ++i) offer(link, 0);
  const Times times = drain(link);
  BOOST_TEST(std::ranges::is_sorted(times));
  BOOST_TEST(times.front() >= 8 * ms);
  BOOST_TEST(times.back() <= 12 * ms);
  BOOST_TEST(times.front() < times.back());
}

BOOST_AUTO_TEST_CASE(down_loses_everything_and_up_starts_afresh) {
  Link link({.delay_ns = ms, .rate = mbit});
  for (int i = 0; i < 5; ++i) offer(link, 0);
  link.set_up(false);
  BOOST_TEST(link.empty());
  offer(link, 0);
  BOOST_TEST(link.counters().dropped_down == 6U);
  link.set_up(true);
  offer(link, 0);
  BOOST_TEST(drain(link) == (Times{11 * ms}), boost::test_tools::per_element());
}

BOOST_AUTO_TEST_CASE(a_changed_rate_holds_for_what_waits) {
  // 12.5 ms each at 0.8 Mbit/s; the rate rises tenfold when the first has crossed the wire.
  Link link({.delay_ns = ms, .rate = 800'000});
  for (int i = 0; i < 3; ++i) offer(link, 0);
  link.change({.rate = 8 * mbit}, 25 * ms / 2);
  BOOST_TEST(link.backlog(25 * ms / 2) == 2500U);
  const Nanoseconds first = 25 * ms / 2 + ms;
  BOOST_TEST(drain(link) == (Times{first, first + 5 * ms / 4, first + 5 * ms / 2}),
             boost::test_tools::per_element());
}

BOOST_AUTO_TEST_CASE(counts_lateness) {
  Link link({.delay_ns = ms});
  offer(link, 0, 1250, 3);
  offer(link, 0);
  link.delivered(ms + 2 * ms);
  link.delivered(ms + ms / 2);
  BOOST_TEST(link.counters().late_over_1ms == 3U);
  BOOST_TEST(link.counters().late_max == 2 * ms);
  BOOST_TEST(link.counters().pieces == 2U);
}

BOOST_AUTO_TEST_SUITE_END()
