// SPDX-License-Identifier: BSD-3-Clause
#include "protocol/train_out.hpp"

#include <boost/test/unit_test.hpp>
#include <cstring>
#include <random>
#include <vector>

BOOST_AUTO_TEST_SUITE(train_out)

using namespace parc::protocol;

namespace {

std::vector<std::byte> rest_of(const TrainOut& train) {
  std::vector<std::byte> bytes;
  for (const iovec& part : train.rest()) {
    const auto* base = static_cast<const std::byte*>(part.iov_base);
    bytes.insert(bytes.end(), base, base + part.iov_len);
  }
  return bytes;
}

std::vector<std::byte> numbered(std::size_t length) {
  std::vector<std::byte> bytes(length);
  for (std::size_t i = 0; i < length; ++i) bytes[i] = static_cast<std::byte>(i * 7 + i / 256);
  return bytes;
}

} // namespace

BOOST_AUTO_TEST_CASE(header_and_payload_in_order) {
  const auto memory = numbered(10'000);
  const Pieces pieces(const_cast<std::byte*>(memory.data()), memory.size());
  TrainOut train;
  BOOST_TEST(!train.active());
  train.begin();
  for (std::uint64_t at = 0; at < 8192; at += 4096) {
    train.add({Kind::fragments, 0, 0, 4096, 5, at, 0});
    train.add_payload(pieces, at, 4096, 5);
  }
  Prefix prefix{};
  prefix.sequence = 3;
  train.finish(prefix);
  BOOST_TEST(train.active());
  BOOST_TEST(train.rest().size() == 2u); // a contiguous message costs one iovec
  const auto bytes = rest_of(train);
  BOOST_REQUIRE(bytes.size() == sizeof(Prefix) + 2 * sizeof(Descriptor) + 8192);
  std::memcpy(&prefix, bytes.data(), sizeof prefix);
  BOOST_TEST(prefix.magic == train_magic);
  BOOST_TEST(prefix.payload_length == 8192u);
  BOOST_TEST(prefix.entries == 2u);
  BOOST_TEST(std::equal(bytes.end() - 8192, bytes.end(), memory.begin()));
  train.wrote(bytes.size());
  BOOST_TEST(!train.active());
}

// However many pieces a train is of, the system takes it in one call.
BOOST_AUTO_TEST_CASE(trains_of_rows_have_no_more_pieces_than_the_system_takes) {
  const auto memory = numbered(std::size_t{2} << 20);
  Pieces rows;
  rows.append_rows({const_cast<std::byte*>(memory.data()), 256}, 4096, 512);
  TrainOut train;
  train.begin();
  std::vector<std::byte> wanted;
  while (train.room_for_pieces() && train.room_for(sizeof(Descriptor))) {
    const std::uint64_t high = rows.size() - train.payload();
    train.add({Kind::fragments, flag_from_end, 0, 16 * 4096, 5, high - std::uint64_t{16} * 4096, 0});
    for (std::uint64_t at = high; at != high - std::uint64_t{16} * 4096;) { // fragment by fragment, downwards
      at -= 4096;
      train.add_payload(rows, at, 4096, 5);
      const std::size_t end = wanted.size();
      wanted.resize(end + 4096);
      rows.copy_out(at, wanted.data() + end, 4096);
    }
    if (train.payload() == rows.size()) break;
  }
  train.finish({});
  BOOST_TEST(train.rest().size() > TrainOut::max_iovecs / 2);
  BOOST_TEST(train.rest().size() <= TrainOut::system_iovecs);
  const auto bytes = rest_of(train);
  BOOST_REQUIRE(bytes.size() > wanted.size());
  BOOST_TEST(
      std::equal(wanted.begin(), wanted.end(), bytes.end() - static_cast<std::ptrdiff_t>(wanted.size())));
}

// Partial writes and memory taken away in between leave the stream as it was.
BOOST_AUTO_TEST_CASE(half_written_trains_survive_the_loss_of_their_memory) {
  std::mt19937 random(5);
  for (int round = 0; round < 200; ++round) {
    auto memory = numbered(20'000);
    Pieces pieces;
    for (std::size_t at = 0; at < memory.size();) {
      const std::size_t n =
          std::min<std::size_t>(1 + random() % (random() % 3 == 0 ? 30 : 4000), memory.size() - at);
      pieces.append({memory.data() + at, n});
      at += n;
    }
    TrainOut train;
    train.begin();
    const std::uint64_t fragments = 1 + random() % 4;
    for (std::uint64_t i = 0; i < fragments; ++i) {
      train.add({Kind::fragments, 0, 0, 4096, i % 2 + 1, i * 4096, 0});
      train.add_payload(pieces, i * 4096, 4096, i % 2 + 1);
    }
    train.finish({});
    const auto expected = rest_of(train);
    std::vector<std::byte> sent;
    while (train.active()) {
      const auto left = rest_of(train);
      const std::size_t n = 1 + random() % left.size();
      sent.insert(sent.end(), left.begin(), left.begin() + static_cast<long>(n));
      train.wrote(n);
      if (random() % 4 == 0) {
        train.unname(1);
        train.unname(2);
        std::fill(memory.begin(), memory.end(), std::byte{0xee});
      }
    }
    BOOST_REQUIRE(sent == expected);
  }
}

BOOST_AUTO_TEST_CASE(short_pieces_are_staged) {
  auto memory = numbered(4096);
  Pieces pieces;
  for (std::size_t at = 0; at < memory.size(); ++at) pieces.append({memory.data() + at, 1});
  TrainOut train;
  train.begin();
  train.add({Kind::fragments, 0, 0, 4096, 1, 0, 0});
  train.add_payload(pieces, 0, 4096, 1);
  train.finish({});
  BOOST_TEST(train.rest().size() == 2u);
  const auto bytes = rest_of(train);
  BOOST_TEST(std::equal(bytes.end() - 4096, bytes.end(), memory.begin()));
}

BOOST_AUTO_TEST_CASE(the_header_never_overflows) {
  std::vector<std::byte> memory(max_inline);
  const Pieces pieces(memory.data(), memory.size());
  Envelope envelope{};
  envelope.inline_length = max_inline;
  TrainOut train;
  train.begin();
  int count = 0;
  for (; train.room_for(sizeof envelope + max_inline); ++count) train.add(envelope, pieces);
  BOOST_TEST(count == 7);
  for (; train.room_for(sizeof(Descriptor)); ++count) train.add(Descriptor{});
  train.finish({});
  BOOST_TEST(train.rest()[0].iov_len <= max_header);
  BOOST_TEST(train.entries() == count);
}

BOOST_AUTO_TEST_SUITE_END()
