// SPDX-License-Identifier: BSD-3-Clause
// Writes behind the gate of early release: until pass() they are the writer's alone, from then on they are as
// if they were made at that moment, and whatever ends their writer, their reader or the way between ends
// them.
#include "tests/unit/engine_test.hpp"

BOOST_AUTO_TEST_SUITE(engine_gate)

using namespace parc::sim;

namespace {
const auto sizes = data::make({0, 8, 5000, 400'000});

Op& gated(Hosts& hosts, std::uint32_t from, std::uint32_t to, std::uint64_t tag, Bytes& memory,
          bool from_end = false) {
  return hosts.post(from, WriteRequest{.destination = to,
                                       .tag = tag,
                                       .flags = when(from_end, MessageFlags::from_end),
                                       .memory = {memory.data(), memory.size()},
                                       .gated = true});
}
void pass(Hosts& hosts, std::uint32_t rank, const Op& op) {
  hosts.engine(hosts.host_of(rank)).pass(op.handle);
}
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
std::uint64_t written(Hosts& hosts, std::uint32_t host) {
  const Engine::Totals& totals = hosts.engine(host).totals();
  return totals.messages_out + totals.messages_local;
}
bool ended(const Op& op, Fault fault) {
  return op.finished && op.outcome.fault == fault;
}

// A message of rank 0 to rank 1 that nobody may overtake and that overtakes nobody, told by its contents.
struct Row {
  explicit Row(Hosts& on) : hosts(on) {}
  Op& write(bool behind_gate, std::size_t size = 300) {
    out.push_back(pattern(size, static_cast<std::uint32_t>(out.size())));
    return behind_gate ? gated(hosts, 0, 1, 5, out.back()) : hosts.write(0, 1, 5, out.back());
  }
  // Reads so many as are named, and finds them in this order.
  void expect(std::initializer_list<std::size_t> order) {
    std::deque<Bytes> in;
    for (const std::size_t each : order) {
      Op& read = hosts.read(1, 0, 5, in.emplace_back(out[each].size()));
      hosts.settle();
      BOOST_TEST(ended(read, Fault::none));
      BOOST_TEST((in.back() == out[each]), "message " << each << " is not the next one");
    }
  }
  Hosts& hosts;
  std::deque<Bytes> out;
};
} // namespace

BOOST_DATA_TEST_CASE(nobody_hears_of_it_before_it_passes, distances* sizes* data::make({false, true}), far,
                     size, from_end) {
  Hosts hosts({0, far});
  hosts.settle();
  Bytes out = pattern(static_cast<std::size_t>(size), 1), in(out.size()), other(out.size());
  Op& write = gated(hosts, 0, 1, 5, out, from_end);
  Op& named = hosts.read(1, 0, 5, in);
  Op& anybody = hosts.read(1, -1, 5, other);
  Op& probe = hosts.probe(1, 0, 5);
  hosts.settle();
  Op& look = hosts.probe(1, -1, 5, true);
  BOOST_TEST((!write.finished && !named.begun && !anybody.begun && !probe.finished));
  BOOST_TEST((look.finished && look.outcome.source == -1));
  BOOST_TEST(written(hosts, 0) == 0u);
  BOOST_TEST((write.progress.front == 0 && write.progress.back == 0));

  pass(hosts, 0, write);
  hosts.settle();
  BOOST_TEST((ended(write, Fault::none) && ended(named, Fault::none) && in == out));
  BOOST_TEST(!anybody.begun);
  BOOST_TEST(written(hosts, 0) == 1u);
}

// It passes before its read is there, and is found like any other.
BOOST_DATA_TEST_CASE(it_passes_unread, distances* sizes, far, size) {
  Hosts hosts({0, far});
  Bytes out = pattern(static_cast<std::size_t>(size), 1), in(out.size());
  Op& write = gated(hosts, 0, 1, 5, out);
  Op& probe = hosts.probe(1, -1, 5);
  hosts.settle();
  pass(hosts, 0, write);
  hosts.settle();
  BOOST_TEST((probe.finished && probe.outcome.source == 0 && probe.outcome.total == out.size()));
  Op& read = hosts.read(1, 0, 5, in);
  hosts.settle();
  BOOST_TEST((ended(write, Fault::none) && ended(read, Fault::none) && in == out));
}

BOOST_DATA_TEST_CASE(it_passes_once, distances, far) {
  Hosts hosts({0, far});
  Bytes out = pattern(5000, 1), in(out.size()), more(out.size());
  Op& first = hosts.read(1, 0, 5, in);
  Op& second = hosts.read(1, 0, 5, more);
  Op& write = gated(hosts, 0, 1, 5, out);
  for (int i = 0; i < 3; ++i) pass(hosts, 0, write);
  hosts.settle();
  BOOST_TEST((ended(write, Fault::none) && first.finished && in == out));
  pass(hosts, 0, write); // stale
  Op& open = hosts.write(0, 1, 6, out);
  pass(hosts, 0, open);   // never was behind it
  pass(hosts, 1, second); // a read
  hosts.engine(0).pass(0);
  hosts.settle();
  BOOST_TEST(!second.begun);
  BOOST_TEST(written(hosts, 0) == 2u);
}

// Its place among the messages of its pair is the one in which it passes. A session keeps younger ones behind
// it (Session::start); the engine numbers them as they go, so those that went before it leave no gap.
BOOST_DATA_TEST_CASE(the_order_is_that_of_passing, distances, far) {
  Hosts hosts({0, far});
  Row row(hosts);
  row.write(false);
  Op& second = row.write(true);
  Op& third = row.write(true, 9000);
  Op& fourth = row.write(true, 0);
  hosts.settle();
  for (Op* op : {&second, &third, &fourth}) pass(hosts, 0, *op);
  row.write(false);
  row.expect({0, 1, 2, 3, 4});

  Op& late = row.write(true);
  row.write(false);
  row.expect({6});
  pass(hosts, 0, late);
  row.write(false);
  row.expect({5, 7});
  BOOST_TEST(hosts.engine(far).pool_in_use() == 0u);
}

// The gate of one write is no other's.
BOOST_DATA_TEST_CASE(others_go_by, distances, far) {
  Hosts hosts({0, far, far, 0});
  Bytes out = pattern(5000, 1), in(out.size()), aside(out.size()), from_other(out.size());
  Op& waits = gated(hosts, 0, 1, 5, out);
  Op& read = hosts.read(1, 0, 5, in);
  Op& to_other = hosts.write(0, 2, 5, out);
  Op& at_other = hosts.read(2, 0, 5, aside);
  Op& of_other = hosts.write(3, 1, 5, out);
  Op& by_other = hosts.read(1, 3, 5, from_other);
  hosts.settle();
  for (Op* op : {&to_other, &at_other, &of_other, &by_other}) BOOST_TEST(op->finished);
  BOOST_TEST((!waits.finished && !read.begun && aside == out && from_other == out));
  pass(hosts, 0, waits);
  hosts.settle();
  BOOST_TEST((waits.finished && read.finished && in == out));
}

// Canceled behind the gate it was never written: at once, and without a gap where it would have been.
BOOST_DATA_TEST_CASE(it_is_canceled_without_a_trace, distances* sizes, far, size) {
  Hosts hosts({0, far});
  Row row(hosts);
  Op& first = row.write(true);
  Op& second = row.write(true, static_cast<std::size_t>(size));
  Op& third = row.write(true);
  hosts.cancel(0, second);
  BOOST_TEST(ended(second, Fault::canceled));
  hosts.cancel(0, second);
  for (Op* op : {&first, &second, &third}) pass(hosts, 0, *op);
  row.expect({0, 2});
  BOOST_TEST((ended(first, Fault::none) && ended(third, Fault::none)));
  BOOST_TEST(written(hosts, 0) == 2u);
  Op& look = hosts.probe(1, 0, 5, true);
  BOOST_TEST((look.finished && look.outcome.source == -1));
}

// Once it has passed, a cancel finds what it would have found without a gate.
BOOST_DATA_TEST_CASE(it_is_canceled_after_it_passed, distances* sizes, far, size) {
  Hosts hosts({0, far});
  Row row(hosts);
  Op& first = row.write(true, static_cast<std::size_t>(size));
  pass(hosts, 0, first);
  hosts.cancel(0, first); // before it has left: nobody will know
  BOOST_TEST(ended(first, Fault::canceled));
  Op& second = row.write(true);
  pass(hosts, 0, second);
  row.expect({1});
}

// The memory of a write behind the gate moves, in one part or two, and is the only one that is read.
BOOST_DATA_TEST_CASE(its_memory_is_handed_over, distances* data::make({8, 5000, 400'000}), far, size) {
  for (const bool in_two : {false, true}) {
    Hosts hosts({0, far});
    Bytes out = pattern(static_cast<std::size_t>(size), 1), in(out.size()), kept = out;
    const Bytes wanted = out;
    const std::uint64_t half = in_two ? out.size() / 2 : 0;
    Op& write = gated(hosts, 0, 1, 5, out);
    Op& read = hosts.read(1, 0, 5, in);
    hosts.engine(0).hand_over(write.handle, half, kept.data() + half, kept.size() - half);
    std::fill(out.begin() + static_cast<std::ptrdiff_t>(half), out.end(), std::byte{0x77});
    if (in_two) {
      hosts.settle();
      hosts.engine(0).hand_over(write.handle, 0, kept.data(), half);
      std::fill(out.begin(), out.end(), std::byte{0x77});
    }
    hosts.settle();
    BOOST_TEST((!write.finished && !read.begun));
    pass(hosts, 0, write);
    hosts.settle();
    BOOST_TEST((ended(write, Fault::none) && ended(read, Fault::none) && in == wanted));
  }
}

// A rank that leaves takes its reads with it, so nothing holds its writes back any more: they are delivered
// in their order, and the departure is announced behind the last of them.
BOOST_DATA_TEST_CASE(leaving_opens_the_gate, distances* sizes, far, size) {
  Hosts hosts({0, far, far});
  Row row(hosts);
  Bytes unread(8), aside = pattern(100, 9), heard(aside.size());
  Op& reads = hosts.read(0, 1, 5, unread); // what the program was released from
  row.write(false);
  std::deque<Op*> behind;
  for (int i = 0; i < 3; ++i) behind.push_back(&row.write(true, static_cast<std::size_t>(size) + 1));
  Op& to_other = gated(hosts, 0, 2, 5, aside);
  hosts.settle();
  leave(hosts, 0);
  BOOST_TEST(ended(reads, Fault::canceled));
  for (Op* op : behind) BOOST_TEST(!ended(*op, Fault::peer));
  Op& at_other = hosts.read(2, 0, 5, heard);
  hosts.settle();
  BOOST_TEST((ended(to_other, Fault::none) && ended(at_other, Fault::none) && heard == aside));
  if (far == 0 || size == 400'000) BOOST_TEST(!gone(hosts, 0));
  for (Op* op : behind) pass(hosts, 0, *op); // the session's gate opens too, later
  row.expect({0, 1, 2, 3});
  for (Op* op : behind) BOOST_TEST(ended(*op, Fault::none));
  BOOST_TEST(ended(hosts.read(1, 0, 5, unread), Fault::peer));
  BOOST_TEST(gone(hosts, 0));
  BOOST_TEST(written(hosts, 0) == 5u);
}

// To somebody who reads nothing any more, or to itself: they end, and the rank drains.
BOOST_DATA_TEST_CASE(leaving_with_a_write_to_itself, distances, far) {
  Hosts hosts({0, far});
  Bytes out = pattern(5000, 1), in(out.size());
  Op& own = gated(hosts, 0, 0, 5, out);
  Op& read = hosts.read(0, 0, 6, in);
  leave(hosts, 0);
  hosts.settle();
  BOOST_TEST((ended(own, Fault::peer) && ended(read, Fault::canceled) && gone(hosts, 0)));
}

// What a killed rank had behind the gate never was: its writes end at once and are read by nobody.
BOOST_DATA_TEST_CASE(killed_behind_the_gate, distances* sizes, far, size) {
  Hosts hosts({0, far});
  hosts.settle();
  Bytes out = pattern(static_cast<std::size_t>(size), 1), in(out.size()), late(8);
  std::deque<Op*> writes;
  for (int i = 0; i < 3; ++i) writes.push_back(&gated(hosts, 0, 1, 5, out));
  Op& own = gated(hosts, 0, 0, 5, out);
  Op& read = hosts.read(1, 0, 5, in);
  hosts.settle();
  kill(hosts, 0);
  std::fill(out.begin(), out.end(), std::byte{0x77});
  for (Op* op : writes) BOOST_TEST(ended(*op, Fault::canceled));
  BOOST_TEST(ended(own, Fault::canceled));
  for (Op* op : writes) pass(hosts, 0, *op);
  hosts.settle();
  BOOST_TEST((ended(read, Fault::peer) && !read.begun));
  BOOST_TEST(ended(hosts.read(1, 0, 5, late), Fault::peer));
  BOOST_TEST(gone(hosts, 0));
  BOOST_TEST(written(hosts, 0) == 0u);
}

// Killed while it waits for what leaving had let pass.
BOOST_DATA_TEST_CASE(leaving_and_then_dying, distances, far) {
  Hosts hosts({0, far});
  hosts.settle();
  Bytes out = pattern(900'000, 1);
  Op& write = gated(hosts, 0, 1, 5, out);
  leave(hosts, 0);
  hosts.settle();
  BOOST_TEST((!write.finished && !gone(hosts, 0)));
  kill(hosts, 0);
  BOOST_TEST(ended(write, Fault::canceled));
  hosts.settle();
  BOOST_TEST(gone(hosts, 0));
}

// The reader goes, cleanly or not: the write behind the gate ends when that is heard of, those to others
// stay.
BOOST_DATA_TEST_CASE(the_reader_goes, distances* data::make({0, 1, 2}), far, how) {
  Hosts hosts({0, far, far});
  hosts.settle();
  Bytes out = pattern(5000, 1), in(out.size());
  Op& write = gated(hosts, 0, 1, 5, out);
  Op& second = gated(hosts, 0, 1, 5, out);
  Op& aside = gated(hosts, 0, 2, 5, out);
  if (how == 0) leave(hosts, 1);
  if (how == 1) kill(hosts, 1);
  if (how == 2) hosts.drop(far);
  hosts.settle();
  BOOST_TEST(ended(write, how == 2 && far == 0 ? Fault::canceled : Fault::peer));
  BOOST_TEST((second.finished && aside.finished == (how == 2)));
  for (Op* op : {&write, &second, &aside}) pass(hosts, 0, *op);
  if (how == 2) return;
  Op& read = hosts.read(2, 0, 5, in);
  hosts.settle();
  BOOST_TEST((ended(aside, Fault::none) && ended(read, Fault::none) && in == out));
  BOOST_TEST(ended(gated(hosts, 0, 1, 5, out), Fault::peer)); // from here on nothing is kept for it
  leave(hosts, 0);
  hosts.settle();
  BOOST_TEST(gone(hosts, 0));
}

// The way breaks: what waited for it ends, what has another way passes.
BOOST_AUTO_TEST_CASE(the_link_breaks) {
  Hosts hosts({0, 1, 2, 0});
  hosts.settle();
  Bytes out = pattern(5000, 1), in(out.size()), near(out.size());
  Op& lost = gated(hosts, 0, 1, 5, out);
  Op& of_other = gated(hosts, 3, 1, 5, out);
  Op& aside = gated(hosts, 0, 2, 5, out);
  Op& local = gated(hosts, 0, 3, 5, out);
  hosts.break_link(0, 1);
  BOOST_TEST((ended(lost, Fault::peer) && ended(of_other, Fault::peer)));
  BOOST_TEST((!aside.finished && !local.finished));
  pass(hosts, 0, lost);
  pass(hosts, 0, aside);
  pass(hosts, 0, local);
  Op& far_read = hosts.read(2, 0, 5, in);
  Op& near_read = hosts.read(3, 0, 5, near);
  hosts.settle();
  BOOST_TEST((ended(aside, Fault::none) && ended(far_read, Fault::none) && in == out));
  BOOST_TEST((ended(local, Fault::none) && ended(near_read, Fault::none) && near == out));
}

// Rank 0 left with writes that its leaving let pass; what never reaches its reader keeps it from nothing.
BOOST_AUTO_TEST_CASE(the_link_breaks_behind_one_that_left) {
  Hosts hosts({0, 1});
  hosts.settle();
  Bytes out = pattern(900'000, 1);
  Op& write = gated(hosts, 0, 1, 5, out);
  leave(hosts, 0);
  hosts.step(5000);
  BOOST_TEST(!gone(hosts, 0));
  hosts.break_link(0, 1);
  BOOST_TEST((ended(write, Fault::peer) && gone(hosts, 0)));
}

// A whole table of writes waits without having used anything of the link. When the gate opens for all at once
// they are bounded as if they had been written then, block nobody, and give back all that they used.
BOOST_DATA_TEST_CASE(the_gate_opens_for_a_whole_table, data::make({0, 8, 192, 1000, 20'000, 400'000}), size) {
  constexpr std::uint32_t table = 16;
  const Settings settings;
  Hosts hosts({0, 1, 0}, settings);
  hosts.settle();
  const Link& sends = hosts.engine(0).link(hosts.link(0, 1));
  const Link& takes = hosts.engine(1).link(hosts.link(1, 0));
  Bytes word = pattern(5000, 99), heard(word.size());
  for (int round = 0; round < 4; ++round) {
    const std::uint64_t used = sends.credit_used;
    std::deque<Bytes> out, in;
    std::deque<Op*> writes, reads;
    for (std::uint32_t i = 0; i < table; ++i)
      writes.push_back(&gated(hosts, 0, 1, 5, out.emplace_back(pattern(static_cast<std::size_t>(size), i))));
    hosts.settle();
    BOOST_TEST((sends.credit_used == used && sends.fresh.empty() && hosts.engine(1).pool_in_use() == 0));
    for (const Op* op : writes) pass(hosts, 0, *op);
    hosts.settle();
    BOOST_TEST(hosts.engine(1).pool_in_use() <= settings.link_window);
    Op& read = hosts.read(1, 2, 6, heard);
    Op& write = hosts.write(2, 1, 6, word);
    hosts.settle();
    BOOST_TEST((read.finished && write.finished && heard == word));
    for (const Bytes& each : out) reads.push_back(&hosts.read(1, 0, 5, in.emplace_back(each.size())));
    hosts.settle();
    for (const Op* op : writes) BOOST_TEST(ended(*op, Fault::none));
    for (const Op* op : reads) BOOST_TEST(ended(*op, Fault::none));
    BOOST_TEST((in == out));
    BOOST_TEST((takes.granted_used == takes.freed && hosts.engine(1).pool_in_use() == 0));
  }
}

BOOST_AUTO_TEST_SUITE_END()
