// SPDX-License-Identifier: BSD-3-Clause
// What the relay reads off a packet, and the slabs that packets lie in.
#include "tools/wanlink/packet.hpp"

#include <array>
#include <boost/test/unit_test.hpp>
#include <cstring>

using namespace parc::wanlink;

namespace {

constexpr std::size_t virtio = 10;

std::vector<std::byte> ipv4_packet(std::size_t payload, std::array<std::uint8_t, 4> to) {
  std::vector<std::byte> packet(virtio + 20 + 32 + payload);
  packet[virtio] = std::byte{0x45};
  std::memcpy(packet.data() + virtio + 16, to.data(), to.size());
  packet[virtio + 20 + 12] = std::byte{8 << 4}; // TCP header of 32 bytes
  return packet;
}

void make_large(std::vector<std::byte>& packet, std::uint16_t gso_size, std::uint16_t tcp_at) {
  packet[1] = std::byte{1}; // TCP over IPv4
  std::memcpy(packet.data() + 4, &gso_size, sizeof gso_size);
  std::memcpy(packet.data() + 6, &tcp_at, sizeof tcp_at);
}

} // namespace

BOOST_AUTO_TEST_SUITE(packet)

BOOST_AUTO_TEST_CASE(one_packet_is_its_length) {
  const auto facts = inspect(ipv4_packet(100, {10, 77, 0, 3}));
  BOOST_REQUIRE(facts.has_value());
  BOOST_TEST(facts->host == 3U);
  BOOST_TEST(facts->wire_packets == 1U);
  BOOST_TEST(facts->wire_bytes == 152U);
}

BOOST_AUTO_TEST_CASE(a_large_segment_is_many_packets_with_headers) {
  auto packet = ipv4_packet(3 * 1448 + 1, {10, 77, 0, 2});
  make_large(packet, 1448, 20);
  const auto facts = inspect(packet);
  BOOST_REQUIRE(facts.has_value());
  BOOST_TEST(facts->wire_packets == 4U);
  BOOST_TEST(facts->wire_bytes == 4U * 52 + 3 * 1448 + 1);
}

// Whoever is asked answers with SYN and ACK.
BOOST_AUTO_TEST_CASE(what_opens_a_connection) {
  auto packet = ipv4_packet(0, {10, 77, 0, 2});
  packet[virtio + 9] = std::byte{6};
  BOOST_TEST(!inspect(packet)->opens);
  packet[virtio + 20 + 13] = std::byte{0x02};
  BOOST_TEST(inspect(packet)->opens);
  packet[virtio + 20 + 13] = std::byte{0xc2}; // with ECN
  BOOST_TEST(inspect(packet)->opens);
  packet[virtio + 20 + 13] = std::byte{0x12};
  BOOST_TEST(!inspect(packet)->opens);
  packet[virtio + 20 + 13] = std::byte{0x02};
  packet[virtio + 9] = std::byte{17};
  BOOST_TEST(!inspect(packet)->opens);
  packet[virtio + 9] = std::byte{6};
  packet.resize(virtio + 20 + 13); // cut off before its flags
  BOOST_TEST(!inspect(packet)->opens);

  std::vector<std::byte> v6(virtio + 40 + 20);
  v6[virtio] = std::byte{0x60};
  v6[virtio + 6] = std::byte{6};
  v6[virtio + 24] = std::byte{0xfd};
  v6[virtio + 25] = std::byte{0x77};
  v6[virtio + 39] = std::byte{4};
  v6[virtio + 40 + 13] = std::byte{0x02};
  BOOST_TEST(inspect(v6)->opens);
}

BOOST_AUTO_TEST_CASE(ipv6_is_ours_too) {
  std::vector<std::byte> packet(virtio + 40);
  packet[virtio] = std::byte{0x60};
  packet[virtio + 24] = std::byte{0xfd};
  packet[virtio + 25] = std::byte{0x77};
  packet[virtio + 39] = std::byte{4};
  const auto facts = inspect(packet);
  BOOST_REQUIRE(facts.has_value());
  BOOST_TEST(facts->host == 4U);
}

BOOST_AUTO_TEST_CASE(what_is_not_for_a_host_is_nothing) {
  BOOST_TEST(!inspect(ipv4_packet(0, {10, 78, 0, 1})).has_value());
  BOOST_TEST(!inspect(ipv4_packet(0, {224, 0, 0, 1})).has_value());
  BOOST_TEST(!inspect({}).has_value());
  const auto whole = ipv4_packet(0, {10, 77, 0, 1});
  for (std::size_t length = 0; length < virtio + 20; ++length)
    BOOST_TEST(!inspect({whole.data(), length}).has_value());
}

BOOST_AUTO_TEST_CASE(a_false_offload_header_is_harmless) {
  auto packet = ipv4_packet(10, {10, 77, 0, 1});
  make_large(packet, 1, 65'535);
  BOOST_TEST(inspect(packet)->wire_packets == 1U);
  make_large(packet, 0, 20);
  BOOST_TEST(inspect(packet)->wire_packets == 1U);
}

BOOST_AUTO_TEST_CASE(a_packet_keeps_its_bytes_while_others_come_and_go) {
  PacketStore store;
  std::memset(store.room().data(), 42, 1000);
  const PacketBytes kept = store.take(1000);
  for (int i = 0; i < 10'000; ++i) {
    std::memset(store.room().data(), i, 3000);
    const PacketBytes passing = store.take(3000);
    BOOST_REQUIRE(passing.bytes().front() == std::byte(i));
  }
  BOOST_TEST(std::ranges::all_of(kept.bytes(), [](std::byte b) { return b == std::byte{42}; }));
}

BOOST_AUTO_TEST_SUITE_END()
