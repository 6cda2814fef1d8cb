// SPDX-License-Identifier: BSD-3-Clause
// One direction between two hosts: a queue before a wire of finite rate, then a delay. Pure: time and
// randomness come in as arguments, so tests decide both. Invariants: packets leave in the order in which they
// came; a packet is due when its last byte has crossed the wire plus the delay; what waits for the wire never
// exceeds the queue.
#pragma once

#include "tools/wanlink/packet.hpp"
#include "tools/wanlink/settings.hpp"

#include <cstdint>
#include <deque>
#include <random>
#include <unordered_map>

namespace parc::wanlink {

using Random = std::mt19937_64;
using Nanoseconds = std::int64_t; // of CLOCK_MONOTONIC

struct Packet {
  PacketBytes data;
  std::uint32_t wire_packets;
  std::uint32_t wire_bytes;
  Nanoseconds departure; // its last byte has crossed the wire
  Nanoseconds due;
  bool waited; // for the wire, behind others
};

// Everything counts packets on the wire, so a large segment counts as many.
struct LinkCounters {
  std::uint64_t packets = 0; // delivered
  std::uint64_t bytes = 0;   // delivered
  std::uint64_t pieces = 0;  // delivered, a large segment being one
  std::uint64_t dropped_queue = 0;
  std::uint64_t dropped_loss = 0;
  std::uint64_t dropped_down = 0;
  std::uint64_t dropped_closed = 0;
  std::uint64_t late_over_1ms = 0;
  Nanoseconds late_max = 0;
};

class Link {
public:
  explicit Link(const Settings& settings) : settings_(settings) {}

  // Queues the packet or drops it and counts why. True when it is the only one, so that its due time is news.
  bool offer(PacketBytes data, const PacketFacts& facts, Nanoseconds now, Random& random);

  [[nodiscard]] bool empty() const { return packets_.empty(); }
  [[nodiscard]] const Packet& front() const { return packets_.front(); }
  // The front packet was handed over at `now`.
  void delivered(Nanoseconds now);

  // What still waits for the wire crosses it at the rate that holds from `now` on; what is past it keeps its
  // time.
  void change(const Change& change, Nanoseconds now);
  // Nobody who sends here can open a connection over it, but to these ports, as from outside of a NAT or a
  // firewall.
  void close(std::vector<std::uint16_t> but) {
    closed_ = true;
    open_ports_ = std::move(but);
  }
  // A link that goes down loses what is on its way.
  void set_up(bool up);

  [[nodiscard]] bool up() const { return up_; }
  [[nodiscard]] bool closed() const { return closed_; }
  [[nodiscard]] const Settings& settings() const { return settings_; }
  [[nodiscard]] const LinkCounters& counters() const { return counters_; }
  void reset_counters() { counters_ = {}; }
  // Bytes that wait for the wire.
  [[nodiscard]] std::uint64_t backlog(Nanoseconds now) const;
  [[nodiscard]] std::size_t in_flight() const { return packets_.size(); }

private:
  [[nodiscard]] bool lets_in(const PacketFacts& facts) const;
  [[nodiscard]] bool exceeds(const PacketFacts& facts, Nanoseconds now);
  [[nodiscard]] bool is_too_large(const PacketFacts& facts) const;
  [[nodiscard]] bool survives(std::uint32_t wire_packets, Random& random) const;
  [[nodiscard]] Nanoseconds draw_delay(Random& random) const;

  Settings settings_;
  bool up_ = true;
  bool closed_ = false;
  std::vector<std::uint16_t> open_ports_;
  Nanoseconds wire_free_ = 0; // when the wire has sent all that it has accepted
  Nanoseconds last_due_ = 0;
  std::deque<Packet> packets_;
  std::unordered_map<std::uint32_t, Nanoseconds> allowed_; // by ports: when so much may have been sent
  LinkCounters counters_;
};

} // namespace parc::wanlink
