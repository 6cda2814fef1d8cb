// SPDX-License-Identifier: BSD-3-Clause
// MPI's order: which message goes to which read, and what a probe sees.
#include "tests/unit/engine_test.hpp"

BOOST_AUTO_TEST_SUITE(engine_matching)

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

BOOST_DATA_TEST_CASE(contexts_never_meet, distances, far) {
  Hosts hosts({0, far});
  Bytes out(8), in(8);
  Op& second = hosts.post(1, ReadRequest{0, -1, -1, 2, {in.data(), 8}});
  Op& write = hosts.post(0, WriteRequest{0, 1, 5, 1, {out.data(), 8}});
  hosts.settle();
  BOOST_TEST(!second.finished);
  Op& first = hosts.post(1, ReadRequest{0, -1, -1, 1, {in.data(), 8}});
  hosts.settle();
  BOOST_TEST((first.finished && write.finished && !second.finished));
  BOOST_TEST(first.outcome.context == 1u);
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
