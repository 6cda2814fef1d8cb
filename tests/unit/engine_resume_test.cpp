// SPDX-License-Identifier: BSD-3-Clause
// Links that outlive their carriers: whatever byte one ends at, nothing is lost, doubled or reordered; and
// what a statement may say.
#include "tests/unit/engine_test.hpp"

#include <boost/test/data/test_case.hpp>

BOOST_AUTO_TEST_SUITE(engine_resume)

using namespace parc::sim;

namespace {

// Moves `bytes` from host 0 to host 1, and what host 1 answers meanwhile.
void move(Hosts& hosts, std::size_t bytes) {
  while (bytes != 0) {
    const std::size_t n = hosts.pipe(0, 1).fill(hosts.engine(0), hosts.link(0, 1), bytes);
    Refusal refusal = Refusal::none;
    hosts.pipe(0, 1).drain(hosts.engine(1), hosts.link(1, 0), n, 64, refusal);
    BOOST_REQUIRE(refusal == Refusal::none);
    const std::size_t back = hosts.pipe(1, 0).fill(hosts.engine(1), hosts.link(1, 0), 4096);
    hosts.pipe(1, 0).drain(hosts.engine(0), hosts.link(0, 1), back, 64, refusal);
    BOOST_REQUIRE(refusal == Refusal::none);
    if (n == 0 && back == 0) return;
    bytes -= n;
  }
}

Refusal state(Hosts& hosts, const Statement& statement) {
  hosts.engine(0).attach(hosts.link(0, 1));
  std::array<iovec, 4> places;
  hosts.engine(0).plan_read(hosts.link(0, 1), places);
  std::memcpy(places[0].iov_base, &statement, sizeof statement);
  return hosts.engine(0).took(hosts.link(0, 1), sizeof statement);
}

Statement statement_of(Hosts& hosts) { // what host 1 would say
  const Link& link = hosts.engine(1).link(hosts.link(1, 0));
  return {statement_magic, link.missing, link.reading, link.granted_told, link.envelopes_told, 2, 1};
}

} // namespace

// Small ones that ride, one that comes whole, and one that is asked for; the reads of two of them come late.
BOOST_DATA_TEST_CASE(a_carrier_may_end_at_any_byte, boost::unit_test::data::xrange(0, 3), late) {
  Settings settings = Hosts::small_window();
  settings.link_window = 16'384;
  for (std::size_t cut = 1; cut < 45'000; cut += cut < 600 ? 1 : 397) {
    Hosts hosts({0, 1}, settings, 1024);
    const std::size_t sizes[] = {8, 192, 9'000, 20'000, 0};
    std::deque<Bytes> out, in;
    std::deque<Op*> ops;
    for (std::size_t i = 0; i < 5; ++i) in.emplace_back(sizes[i]);
    for (int i = 0; i < 5; ++i)
      if (i % 3 != late) ops.push_back(&hosts.read(1, 0, i, in[static_cast<std::size_t>(i)]));
    for (int i = 0; i < 5; ++i) {
      out.push_back(pattern(sizes[i], static_cast<std::uint32_t>(i)));
      ops.push_back(&hosts.write(0, 1, i, out.back()));
    }
    move(hosts, cut);
    hosts.break_carrier(0, 1);
    move(hosts, cut / 3);
    hosts.break_carrier(0, 1);
    hosts.break_carrier(0, 1);
    for (int i = 0; i < 5; ++i)
      if (i % 3 == late) ops.push_back(&hosts.read(1, 0, i, in[static_cast<std::size_t>(i)]));
    hosts.settle();
    for (const Op* op : ops) BOOST_TEST_REQUIRE((op->finished && op->outcome.fault == Fault::none));
    BOOST_TEST_REQUIRE((in == out));
    const Link& link = hosts.engine(1).link(hosts.link(1, 0));
    BOOST_TEST_REQUIRE(link.granted_used == link.freed);
    BOOST_TEST_REQUIRE(hosts.engine(0).link(hosts.link(0, 1)).log.size() == 0u);
  }
}

// One that was killed before the other side heard of its messages: what they would have taken is free again.
BOOST_AUTO_TEST_CASE(what_died_in_an_outage_is_taken_back) {
  Hosts hosts({0, 1});
  hosts.settle();
  const Link& link = hosts.engine(0).link(hosts.link(0, 1));
  Bytes small = pattern(100, 1), large = pattern(30'000, 2), in(30'000);
  for (int i = 0; i < 100; ++i) hosts.write(0, 1, 1, small);
  hosts.write(0, 1, 2, large);
  while (hosts.pipe(0, 1).fill(hosts.engine(0), hosts.link(0, 1), std::size_t{1} << 20) != 0) {
  }
  BOOST_TEST(link.credit_used == 8u);
  hosts.engine(0).kill(hosts.endpoint(0));
  hosts.break_carrier(0, 1);
  hosts.settle();
  BOOST_TEST(link.credit_used == 0u);
  Op& read = hosts.read(1, 0, -1, in);
  hosts.settle();
  BOOST_TEST((read.finished && read.outcome.fault == Fault::peer));
  BOOST_TEST(hosts.engine(1).pool_in_use() == 0u);
}

// A write whose memory was handed over in an outage travels from its new place.
BOOST_AUTO_TEST_CASE(a_message_moves_while_it_waits) {
  Hosts hosts({0, 1});
  Bytes out = pattern(50'000, 1), copy = out, in(50'000);
  Op& read = hosts.read(1, 0, 1, in);
  Op& write = hosts.write(0, 1, 1, out);
  move(hosts, 20'000);
  hosts.engine(0).detach(hosts.link(0, 1));
  hosts.engine(0).hand_over(write.handle, 10'000, copy.data() + 10'000, 40'000);
  std::fill(out.begin() + 10'000, out.end(), std::byte{0});
  hosts.break_carrier(0, 1);
  hosts.settle();
  BOOST_TEST((read.finished && write.finished && in == copy));
}

BOOST_AUTO_TEST_CASE(what_a_stranger_states_is_refused_and_changes_nothing) {
  Hosts hosts({0, 1});
  Bytes out = pattern(50'000, 1), in(50'000);
  Op& read = hosts.read(1, 0, 1, in);
  Op& write = hosts.write(0, 1, 1, out);
  move(hosts, 30'000);
  const std::uint64_t sent = hosts.engine(0).link(hosts.link(0, 1)).sequence;
  hosts.engine(1).detach(hosts.link(1, 0));
  const Statement truth = statement_of(hosts);
  BOOST_TEST_REQUIRE(truth.missing != 0u);

  Statement invented = truth;
  invented.trains = sent + 1;
  BOOST_TEST(state(hosts, invented) == Refusal::resume);
  invented = truth;
  invented.missing = 1000;
  BOOST_TEST(state(hosts, invented) == Refusal::resume);
  invented.missing = 0; // the train was cut while it was written
  BOOST_TEST(state(hosts, invented) == Refusal::resume);
  invented = truth;
  invented.credit = 0;
  BOOST_TEST(state(hosts, invented) == Refusal::credit);
  invented = truth;
  invented.source_host = 77;
  BOOST_TEST(state(hosts, invented) == Refusal::host);
  invented = truth;
  invented.magic = train_magic;
  BOOST_TEST(state(hosts, invented) == Refusal::magic);
  BOOST_TEST(!write.finished);

  hosts.break_carrier(0, 1);
  hosts.settle();
  BOOST_TEST((read.finished && write.finished && in == out));

  invented = truth; // true once: now it takes back what was acknowledged
  hosts.engine(1).detach(hosts.link(1, 0));
  BOOST_TEST(state(hosts, invented) == Refusal::resume);
}

BOOST_AUTO_TEST_SUITE_END()
