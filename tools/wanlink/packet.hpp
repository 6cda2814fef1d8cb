// SPDX-License-Identifier: BSD-3-Clause
// Packets as a TUN device with IFF_VNET_HDR gives them: a virtio header, then an IP packet, which may be a
// large TCP segment that stands for many packets on the wire. They are read straight into slabs and stay
// there until they are delivered, so the relay copies nothing. Invariant: a slab is reused only when it is
// full and every packet in it is gone.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <utility>
#include <vector>

namespace parc::wanlink {

// The largest thing one read can give: virtio header and an IP packet.
inline constexpr std::size_t max_read = 10 + 65'535;

struct Slab {
  static constexpr std::size_t size = 1024 * 1024;
  std::unique_ptr<std::byte[]> memory = std::make_unique<std::byte[]>(size);
  std::size_t used = 0;
  std::size_t packets = 0;
};

// Bytes of one packet in a slab; gives its place back when it goes.
class PacketBytes {
public:
  PacketBytes(Slab& slab, std::span<const std::byte> bytes) : slab_(&slab), bytes_(bytes) { ++slab.packets; }
  PacketBytes(PacketBytes&& other) noexcept
      : slab_(std::exchange(other.slab_, nullptr)), bytes_(std::exchange(other.bytes_, {})) {}
  PacketBytes& operator=(PacketBytes&& other) noexcept {
    std::swap(slab_, other.slab_);
    std::swap(bytes_, other.bytes_);
    return *this;
  }
  ~PacketBytes() {
    if (slab_) --slab_->packets;
  }
  [[nodiscard]] std::span<const std::byte> bytes() const { return bytes_; }

private:
  Slab* slab_;
  std::span<const std::byte> bytes_;
};

class PacketStore {
public:
  // Room for one read; stays the same until take() is called.
  [[nodiscard]] std::span<std::byte> room();
  // The first `size` bytes of that room become a packet.
  [[nodiscard]] PacketBytes take(std::size_t size);

private:
  static constexpr std::size_t kept_empty = 8; // slabs kept for reuse; the rest goes back to the system
  void next_slab();

  std::vector<std::unique_ptr<Slab>> slabs_; // the last one is being filled
};

// Who a packet is for, and what it is on the wire.
struct PacketFacts {
  unsigned host = 0;              // last byte of the destination address: 10.77.0.HOST or fd77::HOST
  std::uint32_t wire_packets = 1; // a large segment becomes several packets,
  std::uint32_t wire_bytes = 0;   // each with its own headers
  std::uint32_t largest_wire = 0; // of them, in bytes
  bool opens = false;             // a connection of TCP
  std::uint16_t port_there = 0;   // of TCP, where it goes to
  std::uint32_t ports = 0;        // of both ends, of TCP; 0: of anything else
};

// Nothing for what is not addressed to a single host of ours (multicast, another network, not IP, cut off).
[[nodiscard]] std::optional<PacketFacts> inspect(std::span<const std::byte> packet);

} // namespace parc::wanlink
