// SPDX-License-Identifier: BSD-3-Clause
#include "tools/wanlink/link.hpp"

#include <algorithm>
#include <cmath>

namespace parc::wanlink {
namespace {

constexpr Nanoseconds late = 1'000'000;

} // namespace

bool Link::lets_in(const PacketFacts& facts) const {
  return std::ranges::find(open_ports_, facts.port_there) != open_ports_.end();
}

bool Link::offer(PacketBytes data, const PacketFacts& facts, Nanoseconds now, Random& random) {
  if (!up_) {
    counters_.dropped_down += facts.wire_packets;
    return false;
  }
  if (closed_ && facts.opens && !lets_in(facts)) {
    counters_.dropped_closed += facts.wire_packets;
    return false;
  }
  if (exceeds(facts, now)) {
    counters_.dropped_queue += facts.wire_packets;
    return false;
  }
  const bool waits = settings_.rate > 0 && wire_free_ > now;
  if (settings_.rate > 0) {
    if (backlog(now) + facts.wire_bytes > settings_.queue && waits) {
      counters_.dropped_queue += facts.wire_packets;
      return false;
    }
    const double on_wire = static_cast<double>(facts.wire_bytes) * 8e9 / static_cast<double>(settings_.rate);
    wire_free_ = std::max(now, wire_free_) + std::llround(on_wire);
  } else {
    wire_free_ = now;
  }
  // Lost after the wire: a lost packet has used its share of the rate.
  if (is_too_large(facts) || !survives(facts.wire_packets, random)) {
    counters_.dropped_loss += facts.wire_packets;
    return false;
  }
  last_due_ = std::max(last_due_, wire_free_ + draw_delay(random));
  packets_.push_back({std::move(data), facts.wire_packets, facts.wire_bytes, wire_free_, last_due_, waits});
  return packets_.size() == 1;
}

void Link::delivered(Nanoseconds now) {
  const Packet& packet = packets_.front();
  const Nanoseconds lateness = now - packet.due;
  counters_.packets += packet.wire_packets;
  counters_.bytes += packet.wire_bytes;
  ++counters_.pieces;
  counters_.late_max = std::max(counters_.late_max, lateness);
  if (lateness > late) counters_.late_over_1ms += packet.wire_packets;
  packets_.pop_front();
}

void Link::change(const Change& change, Nanoseconds now) {
  const std::uint64_t old_rate = settings_.rate;
  change.apply_to(settings_);
  if (old_rate == settings_.rate || old_rate == 0) return;
  const double stretch =
      settings_.rate == 0 ? 0 : static_cast<double>(old_rate) / static_cast<double>(settings_.rate);
  const auto rescaled = [&](Nanoseconds time) {
    return time <= now ? time : now + std::llround(static_cast<double>(time - now) * stretch);
  };
  for (Packet& packet : packets_) {
    const Nanoseconds departure = rescaled(packet.departure);
    packet.due += departure - packet.departure;
    packet.departure = departure;
  }
  wire_free_ = rescaled(wire_free_);
  last_due_ = packets_.empty() ? 0 : packets_.back().due;
}

void Link::set_up(bool up) {
  up_ = up;
  if (up) return;
  for (const Packet& packet : packets_) counters_.dropped_down += packet.wire_packets;
  packets_.clear();
  wire_free_ = last_due_ = 0;
  allowed_.clear();
}

std::uint64_t Link::backlog(Nanoseconds now) const {
  if (wire_free_ <= now) return 0;
  return static_cast<std::uint64_t>(static_cast<double>(wire_free_ - now) *
                                    static_cast<double>(settings_.rate) / 8e9);
}

// As a policer: no packet is delayed for it.
bool Link::exceeds(const PacketFacts& facts, Nanoseconds now) {
  if (settings_.connection_rate == 0 || facts.ports == 0) return false;
  constexpr std::size_t most_connections =
      4096; // those that have sent nothing for a while are the same as new
  if (allowed_.size() >= most_connections)
    std::erase_if(allowed_, [now](const auto& each) { return each.second <= now; });
  const double ns_a_byte = 8e9 / static_cast<double>(settings_.connection_rate);
  Nanoseconds& allowed = allowed_[facts.ports];
  const Nanoseconds from = std::max(allowed, now);
  if (static_cast<double>(from - now) > static_cast<double>(settings_.queue) * ns_a_byte) return true;
  allowed = from + std::llround(facts.wire_bytes * ns_a_byte);
  return false;
}

// The last packet of a large segment, which may be small, goes with the others.
bool Link::is_too_large(const PacketFacts& facts) const {
  return settings_.largest_packet != 0 && facts.largest_wire > settings_.largest_packet;
}

bool Link::survives(std::uint32_t wire_packets, Random& random) const {
  if (settings_.loss <= 0) return true;
  const double survival = std::pow(1 - settings_.loss, wire_packets);
  return std::uniform_real_distribution<>(0, 1)(random) < survival;
}

Nanoseconds Link::draw_delay(Random& random) const {
  if (settings_.jitter_ns == 0) return settings_.delay_ns;
  std::uniform_int_distribution<Nanoseconds> offset(-settings_.jitter_ns, settings_.jitter_ns);
  return std::max<Nanoseconds>(0, settings_.delay_ns + offset(random));
}

} // namespace parc::wanlink
