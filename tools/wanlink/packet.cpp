// SPDX-License-Identifier: BSD-3-Clause
#include "tools/wanlink/packet.hpp"

#include "tools/wanlink/address.hpp"

#include <algorithm>
#include <cstring>

namespace parc::wanlink {
namespace {

// struct virtio_net_hdr; <linux/virtio_net.h> is no C++.
struct OffloadHeader {
  std::uint8_t flags;
  std::uint8_t gso_type; // 0: not a large segment
  std::uint16_t header_length;
  std::uint16_t gso_size; // payload of each packet on the wire
  std::uint16_t checksum_start;
  std::uint16_t checksum_offset;
};
static_assert(sizeof(OffloadHeader) == 10);

unsigned byte_at(std::span<const std::byte> bytes, std::size_t at) {
  return std::to_integer<unsigned>(bytes[at]);
}

// The last byte of the destination if it lies in the emulated network.
std::optional<unsigned> destination(std::span<const std::byte> ip) {
  const auto in_network = [&](std::size_t at, const auto& prefix) {
    return std::ranges::equal(ip.subspan(at, prefix.size()), prefix,
                              [](std::byte b, std::uint8_t p) { return std::to_integer<unsigned>(b) == p; });
  };
  if (ip.size() >= 20 && byte_at(ip, 0) >> 4 == 4 && in_network(16, ipv4_prefix)) return byte_at(ip, 19);
  if (ip.size() >= 40 && byte_at(ip, 0) >> 4 == 6 && in_network(24, ipv6_prefix)) return byte_at(ip, 39);
  return std::nullopt;
}

// Of TCP. The first packet of a connection has SYN and no ACK.
void look_at_connection(std::span<const std::byte> ip, PacketFacts& facts) {
  constexpr unsigned tcp = 6, syn = 0x02, ack = 0x10;
  const bool v4 = byte_at(ip, 0) >> 4 == 4;
  const std::size_t header = v4 ? 4 * (byte_at(ip, 0) & 0xf) : 40;
  if (byte_at(ip, v4 ? 9 : 6) != tcp || ip.size() < header + 14) return;
  facts.opens = (byte_at(ip, header + 13) & (syn | ack)) == syn;
  facts.port_there = static_cast<std::uint16_t>(byte_at(ip, header + 2) << 8 | byte_at(ip, header + 3));
  std::memcpy(&facts.ports, ip.data() + header, sizeof facts.ports);
}

} // namespace

std::span<std::byte> PacketStore::room() {
  if (slabs_.empty() || Slab::size - slabs_.back()->used < max_read) next_slab();
  Slab& slab = *slabs_.back();
  return {slab.memory.get() + slab.used, max_read};
}

PacketBytes PacketStore::take(std::size_t size) {
  Slab& slab = *slabs_.back();
  const std::byte* begin = slab.memory.get() + slab.used;
  slab.used += (size + 63) / 64 * 64;
  return {slab, {begin, size}};
}

void PacketStore::next_slab() {
  const auto is_empty = [](const std::unique_ptr<Slab>& slab) { return slab->packets == 0; };
  const auto empty = static_cast<std::size_t>(std::ranges::count_if(slabs_, is_empty));
  for (std::size_t surplus = empty > kept_empty ? empty - kept_empty : 0; surplus > 0; --surplus)
    slabs_.erase(std::ranges::find_if(slabs_, is_empty));
  if (const auto reusable = std::ranges::find_if(slabs_, is_empty); reusable != slabs_.end()) {
    (*reusable)->used = 0;
    std::rotate(reusable, reusable + 1, slabs_.end());
  } else {
    slabs_.push_back(std::make_unique<Slab>());
  }
}

std::optional<PacketFacts> inspect(std::span<const std::byte> packet) {
  OffloadHeader offload;
  if (packet.size() < sizeof offload) return std::nullopt;
  std::memcpy(&offload, packet.data(), sizeof offload);
  const auto ip = packet.subspan(sizeof offload);
  const auto host = destination(ip);
  if (!host) return std::nullopt;

  const auto size = static_cast<std::uint32_t>(ip.size());
  PacketFacts facts{.host = *host, .wire_bytes = size, .largest_wire = size};
  look_at_connection(ip, facts);
  const std::size_t tcp = offload.checksum_start;
  if (offload.gso_type == 0 || offload.gso_size == 0 || ip.size() < tcp + 20) return facts;
  const std::size_t headers = tcp + 4 * (byte_at(ip, tcp + 12) >> 4);
  if (ip.size() <= headers) return facts;
  const std::size_t packets = (ip.size() - headers + offload.gso_size - 1) / offload.gso_size;
  facts.wire_packets = static_cast<std::uint32_t>(packets);
  facts.wire_bytes += static_cast<std::uint32_t>((packets - 1) * headers);
  facts.largest_wire = std::min(size, static_cast<std::uint32_t>(headers) + offload.gso_size);
  return facts;
}

} // namespace parc::wanlink
