// SPDX-License-Identifier: BSD-3-Clause
// What lies unread is bounded, and blocks nobody.
#include "tests/unit/engine_test.hpp"

BOOST_AUTO_TEST_SUITE(engine_credit)

using namespace parc::sim;

namespace {
void check_returned(Hosts& hosts) {
  const Link& link = hosts.engine(1).link(hosts.link(1, 0));
  BOOST_TEST(link.granted_used == link.freed);
  BOOST_TEST(hosts.engine(1).pool_in_use() == 0u);
}

// From rank 0 to 1, on two hosts; both are read already.
struct LongAndShort {
  Hosts hosts{{0, 1}};
  Bytes out = pattern(30'000'000, 1), in = Bytes(out.size()), word = Bytes(8), heard = Bytes(8);
  Op& huge = hosts.read(1, 0, 5, in);
  Op& quick = hosts.read(1, 0, 6, heard);
  LongAndShort() { hosts.settle(); }
};

} // namespace

// Unread messages of every size, as many as a pair may always have: one of another tag passes them all. More
// than its receiver has places for wait at home, and block no other pair.
BOOST_DATA_TEST_CASE(unread_messages_block_nobody,
                     data::make({0, 8, 192, 1000, 20'000, 400'000}) * data::make({0, 1000}), size, places) {
  constexpr std::size_t most = 300;
  Settings settings;
  settings.unmatched = static_cast<std::uint64_t>(places) * envelope_bytes;
  Hosts hosts({0, 1, 0}, settings);
  Bytes out = pattern(static_cast<std::size_t>(size), 1), in(out.size()), word = pattern(5000, 2),
        heard(5000);
  std::deque<Bytes> taken;
  std::vector<Op*> writes, reads;
  const auto exchange_one = [&](std::uint32_t from) {
    std::ranges::fill(heard, std::byte{0});
    Op& read = hosts.read(1, from, 6, heard);
    Op& write = hosts.write(from, 1, 6, word);
    hosts.settle();
    BOOST_TEST((read.finished && write.finished && heard == word));
  };
  std::size_t written = 0;
  for (; written < pair_envelopes / 2; ++written) writes.push_back(&hosts.write(0, 1, 5, out));
  exchange_one(0);
  exchange_one(2);
  for (; written < most; ++written) writes.push_back(&hosts.write(0, 1, 5, out));
  hosts.settle();
  const Link& takes = hosts.engine(1).link(hosts.link(1, 0));
  BOOST_TEST(takes.unmatched == (places == 0 ? pair_envelopes : most));
  const auto held = [&] { return hosts.engine(0).backlog(hosts.endpoint(0)).held; };
  const auto unread = [&] { return hosts.engine(1).backlog(hosts.endpoint(1)).unread; };
  BOOST_TEST(held() == (places == 0 ? most - pair_envelopes : 0));
  BOOST_TEST(held() + unread() == most);
  exchange_one(2);
  if (places != 0) exchange_one(0);
  BOOST_TEST(hosts.engine(1).pool_in_use() <= settings.link_window);
  for (std::size_t i = 0; i < written; ++i) {
    taken.emplace_back(out.size());
    reads.push_back(&hosts.read(1, -1, 5, taken.back()));
  }
  hosts.settle();
  BOOST_TEST(held() + unread() == 0U);
  for (Op* op : writes) BOOST_TEST(op->finished);
  for (Op* op : reads) BOOST_TEST(op->finished);
  for (const Bytes& bytes : taken) BOOST_TEST((bytes == out));
  check_returned(hosts);
  for (int i = 0; i < 100; ++i) { // the places for whole messages have come back
    Op& write = hosts.write(0, 1, 5, out);
    Op& read = hosts.read(1, 0, 5, in);
    hosts.settle();
    BOOST_TEST((write.finished && read.finished));
  }
}

// What rides with its envelope takes nothing of the pool. Many pairs that nobody reads from share what their
// link has beside each one's own, and leave something for whoever writes next.
BOOST_AUTO_TEST_CASE(pairs_share_the_places_of_their_link) {
  constexpr std::uint64_t places = 2000, most = 400;
  Settings settings;
  settings.unmatched = places * envelope_bytes;
  const std::uint32_t ranks = 20;
  std::vector<std::uint32_t> place(ranks, 0);
  place[0] = 1;
  Hosts hosts(place, settings);
  hosts.settle();
  Bytes out = pattern(max_inline, 1);
  std::vector<Op*> writes;
  for (std::uint32_t rank = 1; rank < ranks; ++rank)
    for (std::uint32_t i = 0; i < most; ++i) writes.push_back(&hosts.write(rank, 0, 5, out));
  hosts.settle();
  const auto done = static_cast<std::size_t>(std::ranges::count_if(writes, &Op::finished));
  BOOST_TEST(done == hosts.engine(1).link(hosts.link(1, 0)).unmatched);
  BOOST_TEST(done >= (ranks - 1) * pair_envelopes);
  BOOST_TEST(done <= places + (ranks - 1) * pair_envelopes);
  BOOST_TEST(hosts.engine(1).pool_in_use() == 0u);
  std::deque<Bytes> taken;
  for (std::size_t i = 0; i < writes.size(); ++i) (void)hosts.read(0, -1, 5, taken.emplace_back(out.size()));
  hosts.settle();
  BOOST_TEST(std::ranges::all_of(writes, &Op::finished));
  BOOST_TEST(std::ranges::all_of(taken, [&](const Bytes& bytes) { return bytes == out; }));
  check_returned(hosts);
}

// Long messages use up the credit when they are announced; small ones ride all the same, and need no answer.
BOOST_AUTO_TEST_CASE(small_messages_ride_behind_long_ones) {
  Hosts hosts({0, 1}, Settings{});
  hosts.settle();
  Bytes bulk = pattern(65'536, 1), out = pattern(8, 2);
  std::deque<Bytes> taken;
  std::vector<Op*> small;
  for (int i = 0; i < 64; ++i) {
    (void)hosts.read(1, 0, 1, taken.emplace_back(bulk.size()));
    (void)hosts.write(0, 1, 1, bulk);
  }
  for (int i = 0; i < 64; ++i) {
    small.push_back(&hosts.read(1, 0, 2, taken.emplace_back(out.size())));
    (void)hosts.write(0, 1, 2, out);
  }
  Refusal refusal = Refusal::none;
  while (hosts.pipe(0, 1).fill(hosts.engine(0), hosts.link(0, 1), 1 << 20) != 0)
    while (hosts.pipe(0, 1).drain(hosts.engine(1), hosts.link(1, 0), 1 << 20, 64, refusal) != 0) {
    }
  BOOST_TEST(std::ranges::all_of(small, &Op::finished));
}

// However small messages fill the headers, a long one moves beside them, and the other way round.
BOOST_AUTO_TEST_CASE(bulk_moves_beside_small_messages_of_every_size) {
  for (std::size_t size = 0; size <= 200; ++size) {
    Hosts hosts({0, 1});
    hosts.settle();
    Bytes bulk = pattern(2'000'000, 1), taken(bulk.size()), out = pattern(size, 2), in(size);
    Op& read = hosts.read(1, 0, 1, taken);
    (void)hosts.write(0, 1, 1, bulk);
    std::deque<Op*> small;
    std::size_t heard = 0;
    // A thousand wait at any time; a train or two travel each way in a step.
    for (int step = 0; step < 1500 && !(read.finished && heard > 500); ++step) {
      while (small.size() < 1000) {
        (void)hosts.read(1, 0, 5, in);
        small.push_back(&hosts.write(0, 1, 5, out));
      }
      hosts.step(65'536);
      for (; !small.empty() && small.front()->finished; ++heard) small.pop_front();
    }
    BOOST_TEST(read.finished,
               "beside messages of " << size << " bytes " << read.progress.front << " arrived");
    BOOST_TEST(heard > 500u, heard << " messages of " << size << " bytes arrived beside the long one");
  }
}

// Credit that went with aborted, discarded or truncated messages comes back.
BOOST_AUTO_TEST_CASE(no_credit_is_lost) {
  Hosts hosts({0, 1, 0, 1});
  hosts.settle();
  Bytes out = pattern(200'000, 1), in(1000);
  for (int i = 0; i < 50; ++i) {
    hosts.write(0, 1, 5, out);
    for (int j = 0; j < i; ++j) hosts.step(1000);
    hosts.read(1, 0, 5, in);
    hosts.settle();
  }
  check_returned(hosts);
  for (int i = 0; i < 3; ++i) hosts.write(2, 1, 5, out), hosts.step(9000);
  hosts.engine(0).kill(hosts.endpoint(2));
  hosts.settle();
  Op& read = hosts.read(1, 2, 5, in); // one may have been whole by then
  hosts.settle();
  BOOST_TEST(read.finished);
  hosts.write(0, 3, 5, out);
  hosts.step(1000);
  hosts.engine(1).leave(hosts.endpoint(3));
  hosts.settle();
  hosts.read(1, 2, 5, in);
  hosts.read(1, 2, 5, in);
  hosts.settle();
  check_returned(hosts);
}

// What one that has left wrote goes to everybody, more than there are places for, too: its departure is
// behind that, and others wait for it.
BOOST_AUTO_TEST_CASE(who_leaves_is_known_to_have_departed_whatever_lies_unread) {
  Settings settings;
  settings.unmatched = 0;
  Hosts hosts({0, 1, 1}, settings);
  hosts.settle();
  Bytes out = pattern(100, 1), in(100);
  for (int i = 0; i < 300; ++i) hosts.write(0, 1, 5, out);
  Op& waits = hosts.read(2, 0, 6, in);
  hosts.settle();
  BOOST_TEST(!waits.finished);
  hosts.engine(0).leave(hosts.endpoint(0));
  hosts.settle();
  BOOST_TEST((waits.finished && waits.outcome.fault == Fault::peer));
  for (int i = 0; i < 300; ++i) {
    Op& read = hosts.read(1, 0, 5, in);
    BOOST_TEST((read.finished && read.outcome.fault == Fault::none));
  }
}

// Messages that a departed rank will never take do not use up its neighbour's places.
BOOST_AUTO_TEST_CASE(places_of_discarded_messages_come_back) {
  Settings settings;
  settings.unmatched = 0;
  Hosts hosts({0, 1, 1}, settings);
  hosts.settle();
  hosts.engine(1).leave(hosts.endpoint(2));
  Bytes out = pattern(100, 1), in(100);
  for (int i = 0; i < 100; ++i) hosts.write(0, 2, 5, out); // before the departure is heard of
  hosts.settle();
  BOOST_TEST(hosts.engine(1).link(hosts.link(1, 0)).unmatched == 0u);
  for (int i = 0; i < 200; ++i) {
    Op& write = hosts.write(0, 1, 5, out);
    hosts.settle();
    BOOST_TEST(write.finished); // whole, though nobody reads yet
    hosts.read(1, 0, 5, in);
    hosts.settle();
  }
}

BOOST_DATA_TEST_CASE(without_any_pool_all_still_arrives, data::make({0, 8, 193, 5000, 400'000}), size) {
  Settings settings;
  settings.pool = 0;
  Hosts hosts({0, 1}, settings);
  hosts.settle();
  Bytes out = pattern(static_cast<std::size_t>(size), 1), in(out.size());
  Op& write = hosts.write(0, 1, 5, out);
  hosts.settle();
  Op& read = hosts.read(1, 0, 5, in);
  hosts.settle();
  BOOST_TEST((write.finished && read.finished && in == out));
}

BOOST_AUTO_TEST_CASE(the_window_follows_the_path_within_the_pool) {
  Settings settings;
  settings.pool = std::uint64_t{4} << 20;
  Hosts hosts({0, 1}, settings);
  hosts.settle();
  Bytes out = pattern(1'500'000, 1), in(out.size()), word(8);
  hosts.engine(0).set_path(hosts.link(0, 1), 131'072, 1000);
  hosts.write(0, 1, 1, word);
  hosts.settle();
  Op& write = hosts.write(0, 1, 5, out);
  hosts.settle();
  BOOST_TEST(write.finished); // within twice the delay product
  hosts.engine(0).set_path(hosts.link(0, 1), 131'072, 1'000'000);
  hosts.write(0, 1, 1, word);
  hosts.settle();
  BOOST_TEST(hosts.engine(1).link(hosts.link(1, 0)).reserved * 4096 <= settings.pool / 4 * 3);
  BOOST_TEST(hosts.engine(1).pool_in_use() <= settings.pool);
}

// Payload keeps to the limit, what is short passes it, and nothing stops where the limit changes: however
// little is acknowledged unasked.
BOOST_FIXTURE_TEST_CASE(no_more_is_in_flight_than_may_be, LongAndShort) {
  constexpr std::uint64_t most = 400'000;
  const std::uint32_t link = hosts.link(0, 1);
  hosts.engine(0).set_path(link, 50'000, 100);
  hosts.engine(0).limit_flight(link, most);
  hosts.write(0, 1, 5, out);
  for (int i = 0; i < 20; ++i) hosts.step(100'000);
  for (int i = 0; i < 20; ++i) hosts.pipe(0, 1).fill(hosts.engine(0), link, 1 << 20); // nothing comes back
  BOOST_TEST(hosts.engine(0).link(link).flight_is_full());
  BOOST_TEST(hosts.engine(0).plan_write(link).empty());
  hosts.write(0, 1, 6, word);
  BOOST_TEST(!hosts.engine(0).plan_write(link).empty());
  std::uint64_t limit = 1;
  for (int i = 0; hosts.step(100'000); ++i) {
    BOOST_TEST(hosts.engine(0).link(link).in_flight <= most + 50'000);
    if (i % 50 == 0) hosts.engine(0).limit_flight(link, limit = limit * 37 % most);
  }
  BOOST_TEST((quick.finished && huge.finished && in == out));
  BOOST_TEST(hosts.engine(0).link(link).in_flight == 0u);
}

BOOST_FIXTURE_TEST_CASE(a_short_message_does_not_wait_for_a_long_one, LongAndShort) {
  hosts.write(0, 1, 5, out);
  for (int i = 0; i < 20; ++i) hosts.step(100'000);
  hosts.write(0, 1, 6, word);
  for (int i = 0; i < 4 && !quick.finished; ++i) hosts.step(150'000);
  BOOST_TEST((quick.finished && !huge.finished));
  hosts.settle();
  BOOST_TEST((huge.finished && in == out));
}

// All start to send before anybody reads: 4 hosts, pipes of a few hundred bytes.
BOOST_AUTO_TEST_CASE(all_pairs_at_once_through_tiny_pipes) {
  Settings settings;
  settings.pool = 65'536;
  settings.link_window = 8192;
  Hosts hosts({0, 1, 2, 3}, settings, 512);
  for (std::uint32_t a = 0; a < 4; ++a)
    for (std::uint32_t b = 0; b < 4; ++b)
      if (a != b) hosts.pipe(a, b) = Pipe(300);
  std::deque<Bytes> out, in;
  std::vector<Op*> ops;
  for (std::uint32_t from = 0; from < 4; ++from)
    for (std::uint32_t to = 0; to < 4; ++to) {
      out.push_back(pattern(200'000, from * 4 + to));
      ops.push_back(&hosts.write(from, to, 1, out.back()));
    }
  hosts.settle(250);
  for (std::uint32_t at = 0; at < 4; ++at)
    for (std::uint32_t from = 0; from < 4; ++from) in.emplace_back(200'000);
  for (std::uint32_t from = 0; from < 4; ++from)
    for (std::uint32_t at = 0; at < 4; ++at) ops.push_back(&hosts.read(at, from, 1, in[from * 4 + at]));
  hosts.settle(250);
  for (Op* op : ops) BOOST_TEST(op->finished);
  BOOST_TEST((in == out));
}

BOOST_AUTO_TEST_SUITE_END()
