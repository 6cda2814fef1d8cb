// SPDX-License-Identifier: BSD-3-Clause
// Messages of the largest length: offsets beyond 4 GiB, from both ends. Their memory is one buffer named over
// and over, and of what travels only so much moves as a test needs.
#include "tests/unit/engine_test.hpp"

BOOST_AUTO_TEST_SUITE(engine_sizes)

using namespace parc::sim;

namespace {
constexpr std::size_t block = std::size_t{1} << 20;

Pieces again_and_again(Bytes& buffer, std::uint64_t total) {
  Pieces pieces;
  for (; total > buffer.size(); total -= buffer.size()) pieces.append({buffer.data(), buffer.size()});
  pieces.append({buffer.data(), total});
  return pieces;
}

} // namespace

BOOST_DATA_TEST_CASE(the_largest_message_for_a_small_read, data::make({0, 1, 2, 3}) * data::make({0, 1}),
                     ends, late) {
  Hosts hosts({0, 1});
  hosts.settle();
  Bytes out = pattern(block, 1), in(10'000);
  ReadRequest read{.source = 0,
                   .tag = 5,
                   .flags = when((ends & 1) != 0, MessageFlags::from_end),
                   .memory = {in.data(), in.size()}};
  const WriteRequest write{.destination = 1,
                           .tag = 5,
                           .flags = when((ends & 2) != 0, MessageFlags::from_end),
                           .memory = again_and_again(out, max_message)};
  Op& written = hosts.post(0, write);
  if (late != 0) hosts.settle();
  Op& taken = hosts.post(1, read);
  hosts.settle();
  BOOST_TEST((taken.finished && written.finished));
  BOOST_TEST((taken.outcome.fault == Fault::truncated));
  BOOST_TEST(taken.outcome.total == max_message);
  BOOST_TEST((written.outcome.fault == Fault::none));
  BOOST_TEST(std::equal(in.begin(), in.end(), out.begin()));
  BOOST_TEST(hosts.engine(1).pool_in_use() == 0u);
}

// Downwards from its end, but for its first fragment: the places of the others lie beyond 4 GiB on both
// sides.
BOOST_AUTO_TEST_CASE(the_end_of_the_largest_message_comes_first) {
  Hosts hosts({0, 1});
  hosts.settle();
  Bytes out = pattern(block, 1), in(block);
  Op& taken = hosts.post(1, ReadRequest{.source = 0,
                                        .tag = 5,
                                        .flags = MessageFlags::from_end,
                                        .memory = again_and_again(in, max_message)});
  Op& written = hosts.post(0, WriteRequest{.destination = 1,
                                           .tag = 5,
                                           .flags = MessageFlags::from_end,
                                           .memory = again_and_again(out, max_message)});
  while (taken.progress.back < 2 * block) BOOST_REQUIRE(hosts.step());
  BOOST_TEST(taken.progress.front == default_fragment);
  BOOST_TEST((in == out));
  BOOST_TEST(written.progress.back > 0u);
  hosts.break_link(0, 1);
  BOOST_TEST((taken.outcome.fault == Fault::peer && written.outcome.fault == Fault::peer));
}

BOOST_AUTO_TEST_CASE(the_largest_message_between_neighbours) {
  Hosts hosts({0, 0});
  Bytes out = pattern(block, 1), in(block);
  Op& taken = hosts.post(1, ReadRequest{.source = 0,
                                        .tag = 5,
                                        .flags = MessageFlags::from_end,
                                        .memory = again_and_again(in, max_message)});
  Op& written =
      hosts.post(0, WriteRequest{.destination = 1, .tag = 5, .memory = again_and_again(out, max_message)});
  while (taken.progress.back < 2 * block) BOOST_REQUIRE(hosts.engine(0).copy() != 0u);
  BOOST_TEST((in == out));
  hosts.engine(0).kill(hosts.endpoint(0));
  BOOST_TEST((taken.outcome.fault == Fault::peer && written.outcome.fault == Fault::canceled));
}

BOOST_AUTO_TEST_SUITE_END()
