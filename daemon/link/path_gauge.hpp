// SPDX-License-Identifier: BSD-3-Clause
// From what TCP says of a path now and then: how long a train should be, how much may wait unsent in the
// socket, how much may be under way, and how fast it may leave. About a millisecond of the path each, and
// what it holds: so that order among messages is decided here and not in the socket, and a small message
// waits for that and not for a full queue. Pure: no clock, no socket.
#pragma once

#include <cstdint>

namespace parc::daemon {

struct PathSample {                 // as in tcp_info
  std::uint64_t delivery_rate = 0;  // bytes per second
  bool application_limited = false; // it says no more than what there was to send
  std::uint32_t min_rtt_us = 0;
  std::uint32_t rtt_variation_us = 0;
  std::uint64_t bytes_in = 0; // since the connection began
  std::uint64_t unbroken = 0; // bytes that went since there was last nothing more to send
  unsigned streams = 1;       // that share the path
};

struct PathLimits {
  std::uint32_t train = 0;             // bytes
  std::uint32_t delay_product_kib = 0; // bandwidth times delay
  std::uint32_t unsent = 0;            // bytes in the socket
  std::uint64_t flight = 0;            // bytes not acknowledged
  std::uint64_t pace = 0;              // bytes per second; 0: no limit
};

class PathGauge {
public:
  static constexpr std::uint64_t sample_every = 128 << 10; // bytes
  static constexpr std::uint32_t least_unsent = 64 << 10, most_unsent = 4 << 20;
  static constexpr std::uint64_t least_flight = 64 << 10;

  // False: nothing is known yet.
  bool take(const PathSample& sample);
  [[nodiscard]] const PathLimits& limits() const { return limits_; }

private:
  [[nodiscard]] std::uint64_t pace(const PathSample& sample);

  PathLimits limits_;
  std::uint64_t delivery_rate_ = 0;
  std::uint64_t bytes_in_ = 0;
  std::uint32_t both_ways_ = 0; // samples for which the way back counts as full
  // The highest rates of two rows of samples, the one before and this one, which has so many, and most of
  // what went unbroken in this one.
  std::uint64_t fastest_ = 0, fastest_before_ = 0, longest_ = 0;
  std::uint32_t samples_ = 0;
};

} // namespace parc::daemon
