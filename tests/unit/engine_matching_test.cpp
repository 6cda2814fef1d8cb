// SPDX-License-Identifier: BSD-3-Clause
// MPI's order: which message goes to which read, and what a probe sees.
#include "tests/unit/engine_test.hpp"

BOOST_AUTO_TEST_SUITE(engine_matching)

using namespace parc::sim;

BOOST_DATA_TEST_CASE(messages_of_a_pair_keep_their_order, distances, far) {
  Hosts hosts({0, far});
  std::deque<Bytes> out, in;
  std::vector<Op*> reads;
  for (std::uint32_t i = 0; i < 60; ++i) {
    out.push_back(pattern(i % 3 == 0 ? 10 : i % 3 == 1 ? 5000 : 400'000, i));
    hosts.write(0, 1, static_cast<std::int32_t>(i % 2), out.back());
    if (i == 30) hosts.settle(100'000);
  }
  hosts.settle();
  for (std::uint32_t i = 0; i < 60; ++i) {
    in.emplace_back(400'000);
    reads.push_back(&hosts.read(1, i % 4 < 2 ? 0 : -1, i % 2 == 0 ? 0 : 1, in.back()));
  }
  hosts.settle();
  for (std::uint32_t i = 0; i < 60; ++i) {
    BOOST_TEST(reads[i]->finished);
    BOOST_TEST(reads[i]->outcome.total == out[i].size());
    BOOST_TEST(std::equal(out[i].begin(), out[i].end(), in[i].begin()));
  }
}

BOOST_DATA_TEST_CASE(the_oldest_fitting_read_takes_the_message, distances, far) {
  Hosts hosts({0, far, far});
  Bytes out(8), in(8);
  Op& other_tag = hosts.read(1, 0, 9, in);
  Op& other_source = hosts.read(1, 2, 5, in);
  Op& any_source = hosts.read(1, -1, 5, in);
  Op& named = hosts.read(1, 0, 5, in);
  Op& any = hosts.read(1, -1, -1, in);
  hosts.write(0, 1, 5, out);
  hosts.settle();
  BOOST_TEST((any_source.finished && !named.finished && !any.finished));
  hosts.write(0, 1, 5, out);
  hosts.settle();
  BOOST_TEST((named.finished && !any.finished));
  hosts.write(0, 1, 5, out);
  hosts.settle();
  BOOST_TEST(any.finished);
  BOOST_TEST(any.outcome.source == 0);
  BOOST_TEST(any.outcome.tag == 5);
  BOOST_TEST((!other_tag.finished && !other_source.finished));
}

BOOST_DATA_TEST_CASE(spaces_never_meet, distances, far) {
  Hosts hosts({0, far});
  Bytes out(8), in(8);
  const auto any_of = [&](Space space) {
    return ReadRequest{.tag = 0, .ignore = ~std::uint64_t{0}, .space = space, .memory = {in.data(), 8}};
  };
  Op& second = hosts.post(1, any_of(Space::barriers));
  Op& write = hosts.write(0, 1, 5, out);
  hosts.settle();
  BOOST_TEST(!second.finished);
  Op& first = hosts.post(1, any_of(Space::programs));
  hosts.settle();
  BOOST_TEST((first.finished && write.finished && !second.finished));
  BOOST_TEST((first.outcome.space == Space::programs && first.outcome.tag == 5u));
}

// Six masks are more than the hash has places for; of the reads that fit the oldest takes the message,
// whichever it was found by.
BOOST_DATA_TEST_CASE(reads_with_any_mask_match_in_the_order_of_posting, distances* data::xrange(50), far,
                     seed) {
  Hosts hosts({0, far});
  std::minstd_rand random(static_cast<unsigned>(seed) + 1);
  struct Posted {
    Op* op;
    std::uint64_t tag, ignore;
    std::int64_t source;
  };
  const std::array<std::uint64_t, 6> masks{0, 1, 2, 0xffff'ffff, ~std::uint64_t{0}, std::uint64_t{1} << 63};
  const auto tag = [&] {
    return random() % 4 | std::uint64_t{random() % 2} << 63 | std::uint64_t{random() % 2} << 32;
  };
  Bytes memory(8);
  std::vector<Posted> posted;
  for (int step = 0; step < 200; ++step) {
    if (random() % 2 == 0) {
      Posted& p = posted.emplace_back(
          Posted{nullptr, tag(), masks[random() % masks.size()], random() % 2 == 0 ? -1 : 0});
      p.op = &hosts.post(
          1, ReadRequest{.source = p.source, .tag = p.tag, .ignore = p.ignore, .memory = {memory.data(), 8}});
      hosts.settle();
      if (p.op->finished) posted.pop_back(); // a message waited for it
      continue;
    }
    const std::uint64_t sent = tag();
    hosts.write(0, 1, sent, memory);
    hosts.settle();
    const auto first = std::find_if(posted.begin(), posted.end(),
                                    [&](const Posted& p) { return ((p.tag ^ sent) & ~p.ignore) == 0; });
    for (auto p = posted.begin(); p != posted.end(); ++p) BOOST_TEST(p->op->finished == (p == first));
    if (first == posted.end()) continue;
    BOOST_TEST(first->op->outcome.tag == sent);
    posted.erase(first);
  }
  for (const Posted& p : posted) hosts.cancel(1, *p.op);
  for (const Posted& p : posted) BOOST_TEST((p.op->outcome.fault == Fault::canceled));
}

BOOST_DATA_TEST_CASE(a_word_of_the_writers_comes_with_the_message, distances* data::make({0u, 10u, 100'000u}),
                     far, size) {
  Hosts hosts({0, far});
  Bytes out(size), in(size);
  hosts.post(
      0, WriteRequest{
             .destination = 1, .tag = 5, .data = 0x1234'5678'9abc'def0, .memory = {out.data(), out.size()}});
  hosts.settle();
  Op& probe = hosts.probe(1, 0, 5);
  Op& read = hosts.read(1, 0, 5, in);
  hosts.settle();
  BOOST_TEST(probe.outcome.data == 0x1234'5678'9abc'def0u);
  BOOST_TEST(read.outcome.data == 0x1234'5678'9abc'def0u);
}

ReadRequest claim(bool no_wait = false) {
  return {.ignore = ~std::uint64_t{0},
          .flags = MessageFlags::claim | when(no_wait, MessageFlags::no_wait),
          .memory = {},
          .probe = true};
}

// Whether its message was there before, or comes later; whatever else is asked for, it is nobody else's.
BOOST_DATA_TEST_CASE(a_claimed_message_is_read_by_its_name,
                     distances* data::make({0u, 10u, 100'000u}) * data::xrange(2), far, size, late) {
  Hosts hosts({0, far});
  Bytes first = pattern(size, 1), second = pattern(size, 2), in(size), other(size);
  BOOST_TEST(hosts.post(1, claim(true)).outcome.source == -1);
  Op* claims = late != 0 ? &hosts.post(1, claim()) : nullptr;
  Op& write = hosts.write(0, 1, 5, first);
  hosts.write(0, 1, 6, second);
  hosts.settle();
  if (claims == nullptr) claims = &hosts.post(1, claim());
  BOOST_TEST(claims->finished);
  BOOST_TEST((claims->outcome.tag == 5u && claims->outcome.total == size && claims->outcome.claim != 0));
  hosts.cancel(0, write); // too late
  Op& read = hosts.read(1, -1, -1, other);
  hosts.settle();
  BOOST_TEST((read.finished && other == second));
  Op& claimed =
      hosts.post(1, ReadRequest{.memory = {in.data(), in.size()}, .claimed = claims->outcome.claim});
  hosts.settle();
  BOOST_TEST((claimed.finished && claimed.outcome.fault == Fault::none && in == first && write.finished));
  BOOST_TEST((write.outcome.fault == Fault::none));
  Op& again = hosts.post(1, ReadRequest{.memory = {in.data(), in.size()}, .claimed = claims->outcome.claim});
  BOOST_TEST((again.outcome.fault == Fault::peer));
}

BOOST_DATA_TEST_CASE(a_claimed_message_goes_with_who_claimed_it, distances* data::make({10u, 100'000u}), far,
                     size) {
  Hosts hosts({0, far});
  Bytes out(size);
  Op& write = hosts.write(0, 1, 5, out);
  hosts.settle();
  hosts.post(1, claim());
  hosts.engine(hosts.host_of(1)).leave(hosts.endpoint(1));
  hosts.settle();
  BOOST_TEST(write.finished);
  BOOST_TEST(hosts.engine(hosts.host_of(1)).pool_in_use() == 0u);
}

BOOST_DATA_TEST_CASE(a_synchronous_write_is_done_when_it_is_matched,
                     distances* data::make({0u, 10u, 3000u, 1'000'000u}), far, size) {
  Hosts hosts({0, far});
  Bytes out = pattern(size, 1), in(size);
  const auto write = [&]() -> Op& {
    return hosts.post(0, WriteRequest{.destination = 1,
                                      .tag = 5,
                                      .flags = MessageFlags::synchronous,
                                      .memory = {out.data(), out.size()}});
  };
  Op& early = write();
  hosts.settle();
  BOOST_TEST(!early.finished);
  Op& read = hosts.read(1, 0, 5, in);
  hosts.settle();
  BOOST_TEST((early.finished && read.finished && in == out));
  Op& posted = hosts.read(1, 0, 5, in);
  Op& late = write();
  hosts.settle();
  BOOST_TEST((late.finished && posted.finished));
  Op& never = write();
  hosts.settle();
  hosts.engine(hosts.host_of(1)).leave(hosts.endpoint(1));
  hosts.settle();
  BOOST_TEST((never.outcome.fault == Fault::peer));
}

BOOST_DATA_TEST_CASE(probes_see_and_leave, distances, far) {
  Hosts hosts({0, far});
  Bytes out(1000), in(1000);
  Op& nothing = hosts.probe(1, -1, -1, true);
  BOOST_TEST(nothing.finished);
  BOOST_TEST(nothing.outcome.source == -1);
  Op& waits = hosts.probe(1, -1, 5);
  Op& other = hosts.probe(1, -1, 6);
  BOOST_TEST(!waits.finished);
  hosts.write(0, 1, 5, out);
  hosts.settle();
  BOOST_TEST((waits.finished && !other.finished));
  BOOST_TEST(waits.outcome.total == 1000u);
  Op& there = hosts.probe(1, 0, 5, true);
  BOOST_TEST(there.finished);
  BOOST_TEST(there.outcome.source == 0);
  Op& read = hosts.read(1, 0, 5, in);
  hosts.settle();
  BOOST_TEST(read.finished);
  BOOST_TEST(hosts.probe(1, 0, 5, true).outcome.source == -1);
}

BOOST_DATA_TEST_CASE(probes_do_not_see_what_a_posted_read_takes, distances, far) {
  Hosts hosts({0, far});
  Bytes out(8), in(8);
  Op& read = hosts.read(1, 0, 5, in);
  Op& probe = hosts.probe(1, 0, 5);
  hosts.write(0, 1, 5, out);
  hosts.settle();
  BOOST_TEST((read.finished && !probe.finished));
  hosts.write(0, 1, 5, out);
  hosts.settle();
  BOOST_TEST(probe.finished);
}

BOOST_AUTO_TEST_CASE(three_hosts_all_to_all) {
  Hosts hosts({0, 1, 2, 0, 1, 2, 2});
  std::deque<Bytes> out, in;
  std::vector<std::pair<Op*, std::uint32_t>> reads;
  for (std::uint32_t at = 0; at < 7; ++at)
    for (std::uint32_t from = 0; from < 7; ++from) {
      const std::size_t size = (at * 7 + from) * 9'001;
      in.emplace_back(size);
      if ((at + from) % 2 != 0) reads.emplace_back(&hosts.read(at, from, 3, in.back()), from);
    }
  for (std::uint32_t at = 0; at < 7; ++at)
    for (std::uint32_t from = 0; from < 7; ++from) {
      out.push_back(pattern((at * 7 + from) * 9'001, at * 7 + from));
      hosts.write(from, at, 3, out.back());
    }
  hosts.settle(50'000);
  for (std::uint32_t at = 0; at < 7; ++at)
    for (std::uint32_t from = 0; from < 7; ++from)
      if ((at + from) % 2 == 0) reads.emplace_back(&hosts.read(at, from, 3, in[at * 7 + from]), from);
  hosts.settle(50'000);
  for (const auto& [read, from] : reads) {
    BOOST_TEST(read->finished);
    BOOST_TEST(read->outcome.source == static_cast<int>(from));
  }
  BOOST_TEST((in == out));
}

BOOST_AUTO_TEST_SUITE_END()
