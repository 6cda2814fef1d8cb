// SPDX-License-Identifier: BSD-3-Clause
// Operations that have no memory before their message is matched.
#include "tests/unit/engine_test.hpp"

BOOST_AUTO_TEST_SUITE(engine_late)

using namespace parc::sim;

namespace {

Op& late_read(Hosts& hosts, std::uint32_t at, std::int64_t source, std::uint64_t tag) {
  ReadRequest request;
  request.source = source;
  request.tag = tag;
  request.late = true;
  return hosts.post(at, request);
}

// The read of what a late one has claimed.
Op& placed_read(Hosts& hosts, std::uint32_t at, const Op& claimed, Bytes& memory) {
  ReadRequest request;
  request.claimed = claimed.outcome.claim;
  request.memory = Pieces(memory.data(), memory.size());
  return hosts.post(at, request);
}

Op& late_write(Hosts& hosts, std::uint32_t from, std::uint32_t to, std::uint64_t tag, std::size_t bytes) {
  WriteRequest request;
  request.destination = to;
  request.tag = tag;
  request.late = bytes;
  return hosts.post(from, request);
}

Pieces pieces(Bytes& bytes) {
  return {bytes.data(), bytes.size()};
}

} // namespace

// To another host and on one, of every size.
BOOST_DATA_TEST_CASE(a_late_write_asks_for_its_memory_when_it_is_matched,
                     data::make({1, 100, 5000, 400'000}) * data::make({0, 1}), size, there) {
  Hosts hosts({0, static_cast<std::uint32_t>(there)});
  hosts.settle();
  Bytes out = pattern(static_cast<std::size_t>(size), 1), in(out.size());
  Op& write = late_write(hosts, 0, 1, 5, out.size());
  hosts.settle();
  BOOST_TEST((!write.wanted && !write.finished));
  Op& read = hosts.read(1, 0, 5, in);
  hosts.settle();
  BOOST_TEST((read.begun && write.wanted && !write.finished && !read.finished));
  hosts.engine(0).place(write.handle, pieces(out));
  hosts.settle();
  BOOST_TEST((write.finished && read.finished && in == out));
}

BOOST_DATA_TEST_CASE(a_late_write_may_get_its_memory_before, data::make({0, 1}), there) {
  Hosts hosts({0, static_cast<std::uint32_t>(there)});
  hosts.settle();
  Bytes out = pattern(5000, 1), in(out.size());
  Op& write = late_write(hosts, 0, 1, 5, out.size());
  hosts.settle();
  hosts.engine(0).place(write.handle, pieces(out));
  Op& read = hosts.read(1, 0, 5, in);
  hosts.settle();
  BOOST_TEST((!write.wanted && write.finished && read.finished && in == out));
}

// It takes its message in its turn, before reads that came later, and of a sender that waits meanwhile.
BOOST_DATA_TEST_CASE(a_late_read_claims_what_it_would_have_taken,
                     data::make({1, 100, 5000, 400'000}) * data::make({0, 1}), size, there) {
  Hosts hosts({0, static_cast<std::uint32_t>(there)});
  hosts.settle();
  Bytes first = pattern(static_cast<std::size_t>(size), 1), second = pattern(first.size(), 2),
        one(first.size()), other(first.size());
  Op& late = late_read(hosts, 1, 0, 5);
  Op& read = hosts.read(1, 0, 5, other);
  hosts.write(0, 1, 5, first);
  hosts.write(0, 1, 5, second);
  hosts.settle();
  BOOST_TEST((late.finished && late.outcome.claim != 0u && read.finished && other == second));
  Op& placed = placed_read(hosts, 1, late, one);
  hosts.settle();
  BOOST_TEST((placed.finished && one == first));
}

BOOST_AUTO_TEST_CASE(a_read_gives_its_memory_back_while_it_waits) {
  Hosts hosts({0, 1});
  hosts.settle();
  Bytes out = pattern(5000, 1), in(out.size()), untouched(out.size());
  Op& read = hosts.read(1, 0, 5, untouched);
  BOOST_TEST(hosts.engine(1).unplace(read.handle));
  BOOST_TEST(!hosts.engine(1).unplace(read.handle));
  hosts.write(0, 1, 5, out);
  hosts.settle();
  BOOST_TEST((read.finished && read.outcome.claim != 0u && untouched == Bytes(out.size())));
  Op& placed = placed_read(hosts, 1, read, in);
  hosts.settle();
  BOOST_TEST((placed.finished && in == out));
  BOOST_TEST(!hosts.engine(1).unplace(placed.handle));
}

// What has no memory ends as anything else.
BOOST_DATA_TEST_CASE(late_operations_end_with_their_peers, data::make({0, 1}), there) {
  Hosts hosts({0, static_cast<std::uint32_t>(there), 0});
  hosts.settle();
  Bytes in(5000);
  Op& canceled = late_write(hosts, 2, 1, 6, 5000);
  Op& matched = late_write(hosts, 0, 1, 5, 5000);
  Op& read = hosts.read(1, 0, 5, in);
  Op& waits = late_read(hosts, 1, 0, 7);
  hosts.settle();
  BOOST_TEST(matched.wanted);
  hosts.cancel(2, canceled);
  hosts.settle();
  BOOST_TEST((canceled.finished && canceled.outcome.fault == Fault::canceled));
  hosts.engine(0).kill(hosts.endpoint(0));
  hosts.settle();
  BOOST_TEST((matched.finished && read.finished && read.outcome.fault == Fault::peer));
  BOOST_TEST((waits.finished && waits.outcome.fault == Fault::peer));
  hosts.engine(0).place(matched.handle, pieces(in)); // too late, and harmless
}

BOOST_AUTO_TEST_SUITE_END()
