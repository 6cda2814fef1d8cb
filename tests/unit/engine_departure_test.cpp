// SPDX-License-Identifier: BSD-3-Clause
// Ranks leave, are killed, lose their hosts: operations end, and only those that must.
#include "tests/unit/engine_test.hpp"

#include <malloc.h>

BOOST_AUTO_TEST_SUITE(engine_departure)

using namespace parc::sim;

namespace {
void leave(Hosts& hosts, std::uint32_t rank) {
  hosts.engine(hosts.host_of(rank)).leave(hosts.endpoint(rank));
}
void kill(Hosts& hosts, std::uint32_t rank) {
  hosts.engine(hosts.host_of(rank)).kill(hosts.endpoint(rank));
}
bool gone(Hosts& hosts, std::uint32_t rank) {
  const auto& list = hosts.record(hosts.host_of(rank)).gone;
  return std::count(list.begin(), list.end(), rank) == 1;
}
} // namespace

BOOST_DATA_TEST_CASE(reads_of_a_departed_rank_end, distances, far) {
  Hosts hosts({0, far, far});
  Bytes in(8), out(8);
  Op& named = hosts.read(0, 1, 5, in);
  Op& other = hosts.read(0, 2, 5, in);
  Op& anybody = hosts.read(0, -1, 5, in);
  Op& probe = hosts.probe(0, 1, 5);
  leave(hosts, 1);
  hosts.settle();
  BOOST_TEST(named.finished);
  BOOST_TEST(named.outcome.fault == Fault::peer);
  BOOST_TEST(probe.outcome.fault == Fault::peer);
  BOOST_TEST((!other.finished && !anybody.finished));
  BOOST_TEST(hosts.read(0, 1, 6, in).outcome.fault == Fault::peer);
  BOOST_TEST(hosts.write(0, 1, 6, out).outcome.fault == Fault::peer);
  leave(hosts, 2);
  hosts.settle();
  BOOST_TEST(other.outcome.fault == Fault::peer);
  BOOST_TEST(anybody.outcome.fault == Fault::peer);
  BOOST_TEST((gone(hosts, 1) && gone(hosts, 2)));
}

// The reader leaves when its message is there, while the train that brought it is still arriving: the writer
// has been acknowledged before it hears of that.
BOOST_DATA_TEST_CASE(what_was_read_is_no_loss, data::make({200, 4096, 20'000}), size) {
  const std::size_t whole = static_cast<std::size_t>(size);
  for (std::size_t more : {1, 2000, 4096, 9000, 50'000}) {
    Hosts hosts({0, 1, 1});
    hosts.settle();
    Bytes out = pattern(whole, 1), in(whole), other(300'000), others(other.size());
    Op& read = hosts.read(1, 0, 5, in);
    (void)hosts.read(2, 0, 5, others);
    Op& write = hosts.write(0, 1, 5, out);
    Op& rest = hosts.write(0, 2, 5, other); // in the same train
    while (hosts.pipe(0, 1).fill(hosts.engine(0), hosts.link(0, 1), 1 << 20) != 0) {
    }
    Refusal refusal = Refusal::none;
    const auto drain = [&](std::size_t most) {
      return hosts.pipe(0, 1).drain(hosts.engine(1), hosts.link(1, 0), most, 64, refusal);
    };
    while (!read.finished) BOOST_REQUIRE(drain(64) != 0);
    for (std::size_t left = more; left != 0;) {
      const std::size_t taken = drain(left);
      if (taken == 0) break;
      left -= taken;
    }
    leave(hosts, 1);
    // The other direction has nothing to wait for.
    hosts.engine(1).flush_acknowledgements();
    while (hosts.pipe(1, 0).fill(hosts.engine(1), hosts.link(1, 0), 1 << 20) != 0) {
    }
    while (hosts.pipe(1, 0).drain(hosts.engine(0), hosts.link(0, 1), 1 << 20, 64, refusal) != 0) {
    }
    hosts.settle();
    BOOST_TEST(read.outcome.fault == Fault::none);
    BOOST_TEST(write.finished);
    BOOST_TEST(write.outcome.fault == Fault::none);
    BOOST_TEST(rest.outcome.fault == Fault::none);
    BOOST_TEST(gone(hosts, 1));
    BOOST_TEST(hosts.write(0, 1, 5, out).outcome.fault == Fault::peer);
  }
}

// A job that ends before all its ranks were opened says nothing in the name of those.
BOOST_AUTO_TEST_CASE(what_was_never_opened_is_not_drained) {
  Recorder record;
  Engine engine(Settings{}, record);
  std::vector<Address> members(3);
  for (Address& each : members) each = {here, engine.add_endpoint()};
  const std::uint64_t group = engine.add_group(members);
  BOOST_TEST(engine.open(members[1].number, 11));
  engine.drop_group(group);
  BOOST_TEST(record.gone == std::vector<std::uint64_t>{11}, boost::test_tools::per_element());
}

// What a link needed goes with it: a kernel whose peers come and go for years keeps nothing of them, although
// it asks once more, for what such a peer said last.
BOOST_AUTO_TEST_CASE(a_broken_link_leaves_nothing) {
  Recorder record;
  Engine engine(Settings{}, record);
  const auto used = [] { return mallinfo2().uordblks; };
  const std::uint64_t asked = record.make();
  std::size_t before = 0;
  for (int i = 0; i < 2000; ++i) {
    if (i == 1000) before = used();
    const std::uint32_t link = engine.add_link({});
    const auto source = static_cast<std::int32_t>(link);
    BOOST_TEST((engine.address(kernel_endpoint, link) == Address{source, kernel_endpoint}));
    engine.break_link(link);
    ReadRequest probe;
    probe.cookie = asked;
    probe.source = source;
    probe.space = Space::kernels;
    probe.probe = true;
    engine.read(kernel_endpoint, probe);
    BOOST_TEST((std::exchange(record.op(asked), {}).outcome.fault == Fault::peer));
  }
  BOOST_TEST(used() < before + std::size_t{1000} * 64);
  BOOST_TEST(!engine.owes_acknowledgement());
}

// Ranks that never talk cost what they are, not what they could say to each other.
BOOST_AUTO_TEST_CASE(a_large_job_costs_what_its_ranks_use) {
  Recorder record;
  Engine engine(Settings{}, record);
  constexpr std::size_t ranks = 20'000;
  const std::size_t before = mallinfo2().uordblks;
  std::vector<Address> members(ranks);
  for (Address& each : members) each = {here, engine.add_endpoint()};
  engine.add_group(members);
  for (std::uint32_t rank = 0; rank < ranks; ++rank) (void)engine.open(members[rank].number, rank);
  BOOST_TEST(mallinfo2().uordblks - before < ranks * std::size_t{1024});
}

// Operations that end with their peer say how it went.
BOOST_DATA_TEST_CASE(how_a_rank_departed_is_told,
                     distances* data::make({Departure::left, Departure::killed, Departure::lost}), far, how) {
  if (how == Departure::lost && far == 0) return;
  for (const std::size_t size : {8, 900'000})
    for (int steps : {0, 1, 3, 10}) {
      Hosts hosts({0, far, far});
      hosts.settle();
      Bytes in(size), out = pattern(size, 1), more(8);
      Op& read = hosts.read(0, 1, 5, in);
      Op& anybody = hosts.read(0, -1, 6, more);
      Op& write = hosts.write(0, 1, 5, out); // which it never reads
      (void)hosts.write(1, 0, 5, out);
      for (int i = 0; i < steps; ++i) hosts.step(900);
      if (how == Departure::left) leave(hosts, 1);
      if (how == Departure::killed) kill(hosts, 1);
      if (how == Departure::lost) hosts.engine(0).break_link(hosts.link(0, far));
      hosts.settle();
      Op& late = hosts.write(0, 1, 5, out);
      BOOST_TEST(late.outcome.fault == Fault::peer);
      BOOST_TEST(late.outcome.departure == how);
      for (const Op* each : {&read, &write})
        if (each->finished && each->outcome.fault == Fault::peer) BOOST_TEST(each->outcome.departure == how);
      if (how == Departure::left) BOOST_TEST(read.outcome.fault == Fault::none);
      if (how == Departure::lost) continue;
      BOOST_TEST(hosts.read(0, 1, 7, more).outcome.departure == how);
      leave(hosts, 2);
      hosts.settle();
      BOOST_TEST(anybody.outcome.fault == Fault::peer);
      BOOST_TEST(anybody.outcome.departure == Departure::none);
    }
}

// What a kernel asks before it sleeps: must a new read wake it?
BOOST_DATA_TEST_CASE(a_read_may_be_answered_at_once, distances, far) {
  Hosts hosts({0, far, far});
  const auto answers = [&] { return hosts.engine(0).may_answer_reads(hosts.endpoint(0)); };
  Bytes in(8), out(8);
  BOOST_TEST(!answers());
  (void)hosts.write(1, 0, 5, out);
  hosts.settle();
  BOOST_TEST(answers());
  (void)hosts.read(0, 1, 5, in);
  hosts.settle();
  BOOST_TEST(!answers());
  leave(hosts, 1);
  hosts.settle();
  BOOST_TEST(answers());
}

// Programs of one host keep their reads to themselves until then.
BOOST_AUTO_TEST_CASE(reads_must_be_known_for_good_when_something_has_happened) {
  for (const char* const what : {"far", "kept", "left", "had left", "nothing"}) {
    const bool nothing = what == std::string_view("nothing");
    Hosts hosts({0, what == std::string_view("far"), 0});
    const auto must_know = [&] { return hosts.engine(0).must_know_reads(hosts.endpoint(0)); };
    Bytes in(8), out(8);
    if (what == std::string_view("kept")) (void)hosts.write(1, 0, 5, out);
    if (what == std::string_view("left")) leave(hosts, 1);
    if (what == std::string_view("had left")) {
      Engine& engine = hosts.engine(0);
      const std::uint64_t other = engine.add_endpoint(), late = engine.add_endpoint();
      const std::int32_t row = engine.add_row(late, {here, other});
      BOOST_TEST(!engine.must_know_reads(late));
      const std::uint64_t later = engine.add_endpoint();
      BOOST_TEST((engine.open(other, 900) && engine.add_row(other, {here, late}) >= 0));
      (void)engine.write(other, {.cookie = 901, .destination = 0, .tag = 1, .memory = {out.data(), 8}});
      engine.leave(other); // it is still there, as it is not read
      BOOST_TEST((engine.must_know_reads(late) && row >= 0));
      BOOST_TEST(!engine.must_know_reads(later));
      BOOST_TEST(engine.add_row(later, {here, other}) >= 0);
      BOOST_TEST(engine.must_know_reads(later));
      continue;
    }
    hosts.settle();
    BOOST_TEST(must_know() == !nothing, what);
    if (what == std::string_view("kept")) (void)hosts.read(0, 1, 5, in);
    hosts.settle();
    BOOST_TEST(must_know() == !nothing, what);
  }
}

// What it wrote before it left is delivered, though no read is there for long.
BOOST_DATA_TEST_CASE(the_words_of_a_rank_that_left, distances* data::make({8, 5000, 200'000, 1'000'000}), far,
                     size) {
  Hosts hosts({0, far});
  Bytes out = pattern(static_cast<std::size_t>(size), 1), in(out.size());
  Op& write = hosts.write(1, 0, 5, out);
  leave(hosts, 1);
  hosts.settle();
  BOOST_TEST(gone(hosts, 1) == write.finished);
  Op& other = hosts.read(0, 1, 6, in);
  BOOST_TEST(other.outcome.fault == Fault::peer);
  Op& read = hosts.read(0, 1, 5, in);
  hosts.settle();
  BOOST_TEST(read.outcome.fault == Fault::none);
  BOOST_TEST((read.finished && write.finished && in == out));
  BOOST_TEST(gone(hosts, 1));
  BOOST_TEST(hosts.read(0, 1, 5, in).outcome.fault == Fault::peer);
}

BOOST_DATA_TEST_CASE(writes_to_a_rank_that_leaves, distances* data::make({0, 8, 5000, 1'000'000}), far,
                     size) {
  for (int steps : {0, 1, 3, 30, 1000}) {
    Hosts hosts({0, far});
    hosts.settle();
    Bytes out = pattern(static_cast<std::size_t>(size), 1), in(8);
    Op& write = hosts.write(0, 1, 5, out);
    for (int i = 0; i < steps; ++i) hosts.step(700);
    leave(hosts, 1);
    hosts.settle();
    BOOST_TEST(write.finished);
    if (far == 0 || size == 1'000'000) BOOST_TEST(write.outcome.fault == Fault::peer);
    BOOST_TEST(gone(hosts, 1));
    BOOST_TEST(hosts.engine(far).pool_in_use() == 0u);
  }
}

// Killed at any moment: the other's operations end one way or the other, and nothing is left behind.
BOOST_DATA_TEST_CASE(killed_in_the_middle,
                     distances* data::make({0u, 1u}) * data::make({8, 5000, 200'000, 900'000}), far, who,
                     size) {
  for (int steps = 0; steps < 30; ++steps) {
    Hosts hosts({0, far});
    hosts.settle();
    Bytes out = pattern(static_cast<std::size_t>(size), 1), in(out.size()), more(100), late(100);
    Op& read = hosts.read(1, 0, 5, in);
    Op& write = hosts.write(0, 1, 5, out);
    Op& waits = hosts.read(1 - who, who, 9, late);
    for (int i = 0; i < steps; ++i) hosts.step(static_cast<std::size_t>(i % 4 == 0 ? 60'000 : 900));
    kill(hosts, who);
    Bytes& memory = who == 0 ? out : in; // of the dead: nobody may read or write it
    std::fill(memory.begin(), memory.end(), std::byte{0x77});
    hosts.settle();
    BOOST_TEST((read.finished && write.finished && waits.finished));
    BOOST_TEST(waits.outcome.fault == Fault::peer);
    BOOST_TEST(gone(hosts, who));
    if (who == 0 && read.outcome.fault == Fault::none) BOOST_TEST((in == pattern(out.size(), 1)));
    if (who == 1 && read.outcome.fault != Fault::none)
      BOOST_TEST(std::count(in.begin(), in.end(), std::byte{0x77}) == static_cast<long>(in.size()));
    BOOST_TEST(hosts.write(1 - who, who, 5, more).outcome.fault == Fault::peer);
    for (std::uint32_t host : {0u, far}) BOOST_TEST(hosts.engine(host).pool_in_use() == 0u);
    if (far == 1) {
      const Link& link = hosts.engine(1).link(hosts.link(1, 0));
      BOOST_TEST(link.granted_used == link.freed);
    }
  }
}

BOOST_AUTO_TEST_CASE(leaving_and_then_dying) {
  Hosts hosts({0, 1});
  hosts.settle();
  Bytes out = pattern(900'000, 1), in(out.size());
  Op& write = hosts.write(0, 1, 5, out);
  leave(hosts, 0);
  hosts.settle();
  BOOST_TEST((!write.finished && !gone(hosts, 0)));
  kill(hosts, 0);
  BOOST_TEST(write.outcome.fault == Fault::canceled);
  hosts.settle();
  BOOST_TEST(gone(hosts, 0));
  BOOST_TEST(hosts.read(1, 0, 5, in).outcome.fault == Fault::peer);
}

BOOST_DATA_TEST_CASE(a_link_breaks_in_the_middle, data::make({8, 5000, 200'000, 900'000}), size) {
  for (int steps = 0; steps < 30; ++steps) {
    Hosts hosts({0, 1, 2});
    hosts.settle();
    Bytes out = pattern(static_cast<std::size_t>(size), 1), in(out.size()), other(out.size()), late(100);
    Op& read = hosts.read(1, 0, 5, in);
    Op& write = hosts.write(0, 1, 5, out);
    Op& unread = hosts.write(0, 1, 6, out);
    Op& waits = hosts.read(1, 0, 9, late);
    Op& aside = hosts.write(0, 2, 5, out);
    Op& anybody = hosts.read(2, -1, 5, other);
    for (int i = 0; i < steps; ++i) hosts.step(static_cast<std::size_t>(i % 4 == 0 ? 60'000 : 900));
    hosts.break_link(0, 1);
    BOOST_TEST((read.finished && write.finished && unread.finished && waits.finished));
    BOOST_TEST(waits.outcome.fault == Fault::peer);
    if (read.outcome.fault == Fault::none) BOOST_TEST((in == out));
    Op& stored = hosts.read(1, 0, 6, in); // it was all there, or it never comes
    BOOST_TEST(stored.finished);
    BOOST_TEST((unread.outcome.fault != Fault::none || stored.outcome.fault == Fault::none));
    if (stored.outcome.fault == Fault::none) BOOST_TEST((in == out));
    BOOST_TEST(hosts.engine(1).pool_in_use() == 0u);
    hosts.settle();
    BOOST_TEST((aside.finished && anybody.finished && other == out));
    BOOST_TEST(hosts.write(0, 1, 5, out).outcome.fault == Fault::peer);
    BOOST_TEST(hosts.write(1, 2, 5, late).outcome.fault == Fault::none);
  }
}

BOOST_AUTO_TEST_CASE(a_rank_that_left_drains_when_its_link_breaks) {
  Hosts hosts({0, 1});
  hosts.settle();
  Bytes out = pattern(900'000, 1);
  hosts.write(0, 1, 5, out);
  leave(hosts, 0);
  hosts.step(5000);
  BOOST_TEST(!gone(hosts, 0));
  hosts.break_link(0, 1);
  BOOST_TEST(gone(hosts, 0));
}

// Nobody asked while it was there: its kernel still says what has become of it.
BOOST_DATA_TEST_CASE(a_peer_that_is_long_gone, distances* data::make({Departure::left, Departure::killed}),
                     far, how) {
  Hosts hosts({0, far, far});
  hosts.settle();
  if (how == Departure::left)
    leave(hosts, 1);
  else
    kill(hosts, 1);
  hosts.settle();
  BOOST_TEST(gone(hosts, 1));
  Bytes memory(8);
  Op& read = hosts.read(0, 1, 5, memory);
  Op& write = hosts.write(0, 1, 5, memory);
  Op& anybody = hosts.read(0, -1, 5, memory);
  hosts.settle();
  BOOST_TEST((read.outcome.fault == Fault::peer && read.outcome.departure == how));
  BOOST_TEST(write.finished);
  BOOST_TEST(!anybody.finished);
  leave(hosts, 2);
  hosts.settle();
  BOOST_TEST((anybody.outcome.fault == Fault::peer));
  BOOST_TEST((hosts.write(0, 1, 5, memory).outcome.fault == Fault::peer));
}

// Members of two jobs that know each other's addresses; who is written to has a row for the writer.
BOOST_DATA_TEST_CASE(endpoints_of_two_jobs, distances, far) {
  Hosts both({0, far, 0});
  both.start(8, {far, 0});
  Bytes out = pattern(100'000, 1), in(out.size()), back(8), got(8);
  const std::int32_t row = both.engine(0).add_row(both.endpoint(0), both.address(0, 0, 8));
  BOOST_TEST(row == 3);
  BOOST_TEST(both.engine(0).add_row(both.endpoint(0), both.address(0, 0, 8)) == 3);
  BOOST_TEST(both.engine(0).add_row(both.endpoint(0), both.address(0, 2)) == 2);
  BOOST_TEST(Invariants::rows(both.engine(0), both.endpoint(0)) == 4u);
  both.write(0, 3, 5, out);
  both.settle();
  Op& read = both.post(0, ReadRequest{.tag = 5, .memory = {in.data(), in.size()}}, 8);
  both.settle();
  BOOST_TEST((read.finished && in == out));
  BOOST_TEST(read.outcome.source == 2);
  BOOST_TEST((both.engine(far).address(both.endpoint(0, 8), 2) == both.address(far, 0)));
  Op& waits = both.read(0, 3, 6, got);
  both.post(0, WriteRequest{.destination = 2, .tag = 6, .memory = {back.data(), back.size()}}, 8);
  both.settle();
  BOOST_TEST(waits.finished);
  // Who waits for anybody waits for the added one, too.
  Op& anybody = both.read(0, -1, 7, got);
  leave(both, 1);
  leave(both, 2);
  both.settle();
  BOOST_TEST(!anybody.finished);
  both.drop(far, 8);
  both.settle();
  BOOST_TEST((anybody.outcome.fault == Fault::peer));
}

// A number that nobody has yet fails what is asked of it, and harms neither the link nor who gets it later.
BOOST_AUTO_TEST_CASE(an_address_that_somebody_made_up) {
  Hosts hosts({0, 1, 0});
  hosts.settle();
  const std::uint64_t later = hosts.endpoint(1) + 1;
  const Address made_up{static_cast<std::int32_t>(hosts.link(0, 1)), later};
  const auto row = static_cast<std::uint32_t>(hosts.engine(0).add_row(hosts.endpoint(0), made_up));
  Bytes memory(8), out = pattern(8, 1), in(8);
  Op& read = hosts.read(0, row, 5, memory);
  hosts.write(0, row, 5, memory);
  hosts.settle();
  BOOST_TEST((read.outcome.fault == Fault::peer));
  BOOST_TEST(hosts.engine(1).pool_in_use() == 0u);
  BOOST_TEST((hosts.engine(0).add_row(hosts.endpoint(0), {here, 1000}) == Engine::no_such_endpoint));

  BOOST_TEST(hosts.engine(1).add_endpoint() == later);
  const auto again = static_cast<std::uint32_t>(hosts.engine(0).add_row(hosts.endpoint(2), made_up));
  hosts.write(2, again, 6, out);
  hosts.settle();
  const std::uint64_t cookie = hosts.record(1).make();
  hosts.engine(1).read(later, {.cookie = cookie, .tag = 6, .memory = {in.data(), in.size()}});
  BOOST_TEST((hosts.record(1).op(cookie).finished && in == out));
  Op& waits = hosts.read(2, again, 7, memory);
  hosts.settle();
  BOOST_TEST(!waits.finished);
  hosts.engine(1).leave(later);
  hosts.settle();
  BOOST_TEST((waits.outcome.fault == Fault::peer));
}

// They may be written to before their own host knows whose they are.
BOOST_AUTO_TEST_CASE(a_message_that_comes_before_its_group) {
  Hosts hosts({0, 1});
  const std::uint64_t early = hosts.engine(1).add_endpoint(), writer = hosts.engine(0).add_endpoint();
  const Address there{static_cast<std::int32_t>(hosts.link(0, 1)), early},
      away{static_cast<std::int32_t>(hosts.link(1, 0)), writer};
  Bytes out = pattern(100, 1), in(100);
  hosts.engine(0).add_group(std::vector<Address>{there, {here, writer}});
  hosts.engine(0).write(
      writer, {.cookie = hosts.record(0).make(), .destination = 0, .memory = {out.data(), out.size()}});
  hosts.settle();
  hosts.engine(1).add_group(std::vector<Address>{{here, early}, away});
  const std::uint64_t cookie = hosts.record(1).make();
  hosts.engine(1).read(early, {.cookie = cookie, .source = 1, .memory = {in.data(), in.size()}});
  BOOST_TEST((hosts.record(1).op(cookie).finished && in == out));
  BOOST_TEST(hosts.record(1).op(cookie).outcome.source == 1);
  BOOST_TEST(Invariants::rows(hosts.engine(1), early) == 2u);
}

BOOST_DATA_TEST_CASE(a_job_is_dropped_under_way, data::make({0u, 1u}), first) {
  for (int steps = 0; steps < 30; ++steps) {
    Hosts hosts({0, 1, 0, 1});
    hosts.start(8, {0, 1});
    hosts.settle();
    Bytes out = pattern(900'000, 1), in(out.size()), kept(out.size());
    std::vector<Op*> ops;
    for (std::uint32_t from = 0; from < 4; ++from)
      for (std::uint32_t to = 0; to < 4; ++to)
        for (std::int32_t tag : {0, 1}) ops.push_back(&hosts.write(from, to, tag, out));
    for (std::uint32_t at = 0; at < 4; ++at) ops.push_back(&hosts.read(at, -1, 0, in));
    Op& other = hosts.post(0, WriteRequest{.destination = 1, .memory = {out.data(), out.size()}}, 8);
    Op& stays = hosts.post(1, ReadRequest{.source = 0, .memory = {kept.data(), kept.size()}}, 8);
    for (int i = 0; i < steps; ++i) hosts.step(static_cast<std::size_t>(i % 4 == 0 ? 60'000 : 900));
    hosts.drop(first);
    hosts.settle();
    hosts.drop(1 - first);
    for (Op* op : ops) BOOST_TEST(op->finished);
    hosts.settle();
    BOOST_TEST((gone(hosts, 2) && gone(hosts, 3)));
    BOOST_TEST((other.finished && stays.finished && kept == out));
    for (std::uint32_t host : {0u, 1u}) {
      BOOST_TEST(hosts.engine(host).pool_in_use() == 0u);
      BOOST_TEST(!hosts.engine(host).open(hosts.endpoint(host), 0));
      const Link& link = hosts.engine(host).link(hosts.link(host, 1 - host));
      BOOST_TEST(link.granted_used == link.freed);
    }
    hosts.start(9, {0, 1, 0, 1}); // the links are as good as ever
    Op& again = hosts.post(0, WriteRequest{.destination = 1, .memory = {out.data(), out.size()}}, 9);
    Op& read = hosts.post(1, ReadRequest{.source = 0, .memory = {kept.data(), kept.size()}}, 9);
    hosts.settle();
    BOOST_TEST((again.finished && read.finished));
  }
}

BOOST_AUTO_TEST_CASE(a_host_tells_the_others_when_it_alone_drops_a_job) {
  Hosts hosts({0, 1});
  hosts.settle();
  Bytes out = pattern(900'000, 1), in(8);
  Op& write = hosts.write(0, 1, 5, out);
  Op& read = hosts.read(0, 1, 5, in);
  hosts.settle();
  hosts.drop(1);
  hosts.settle();
  BOOST_TEST(write.outcome.fault == Fault::peer);
  BOOST_TEST(read.outcome.fault == Fault::peer);
}

BOOST_AUTO_TEST_CASE(kernels_talk_over_their_links) {
  Hosts hosts({0, 1, 2});
  Bytes to1 = pattern(100, 1), to2 = pattern(500'000, 2), in1(100), in2(500'000), in0(100), lost(8);
  Op& any = hosts.kernel_read(1, -1, in1);
  Op& named = hosts.kernel_read(2, 0, in2);
  hosts.kernel_write(0, 1, to1);
  hosts.kernel_write(0, 2, to2);
  hosts.kernel_write(2, 0, to1);
  hosts.settle();
  Op& late = hosts.kernel_read(0, 2, in0);
  hosts.settle();
  BOOST_TEST((any.finished && named.finished && late.finished));
  BOOST_TEST((in1 == to1 && in2 == to2 && in0 == to1));
  BOOST_TEST(any.outcome.source == static_cast<int>(hosts.link(1, 0)));
  Op& waits = hosts.kernel_read(1, 0, lost);
  Op& probe = hosts.kernel_probe(1, 0);
  Op& open = hosts.kernel_read(1, -1, lost);
  hosts.break_link(0, 1);
  BOOST_TEST(waits.outcome.fault == Fault::peer);
  BOOST_TEST(probe.outcome.fault == Fault::peer);
  BOOST_TEST(!open.finished);
  BOOST_TEST(hosts.kernel_write(0, 1, to1).outcome.fault == Fault::peer);
  hosts.kernel_write(2, 1, lost);
  hosts.settle();
  BOOST_TEST(open.finished);
}

BOOST_AUTO_TEST_SUITE_END()
