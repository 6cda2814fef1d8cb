// SPDX-License-Identifier: BSD-3-Clause
// What a path is like whose stream no system measures (a forwarded socket, a relay): the time from a train
// that leaves to its acknowledgement, and how many bytes were acknowledged meanwhile. One train at a time, of
// those whose acknowledgement was asked for. Pure: no clock, no socket.
#pragma once

#include "daemon/link/path_gauge.hpp"

#include <array>
#include <chrono>
#include <cstdint>
#include <optional>

namespace parc::daemon {

class TrainTimer {
public:
  using Time = std::chrono::steady_clock::time_point;
  using Duration = std::chrono::microseconds;
  struct Moment {
    Time now;
    std::uint64_t asked_for = 0;    // the last train whose acknowledgement was asked for
    std::uint64_t acknowledged = 0; // the last one that was acknowledged
    std::uint64_t bytes = 0;        // acknowledged in all
    std::uint64_t in_flight = 0;    // bytes
    bool more = false;              // waits to be sent
  };
  // What is so now: after each time that something was sent or came. None: nothing new is known.
  std::optional<PathSample> take(const Moment& moment);
  void round_trip(Duration time, Time now, bool waited); // of something else; it has waited behind others

  // Of the last five to ten minutes in which the path was idle for a moment; 0: none yet. Others have waited
  // behind something: to take those for the path would let more and more wait.
  [[nodiscard]] std::uint32_t lowest_us() const;

private:
  struct Timed {
    std::uint64_t train;
    Time sent;
    Time since; // what is acknowledged from then on was under way
    std::uint64_t bytes;
    bool application_limited;
    bool waited; // something was under way before it
  };

  std::optional<Timed> timed_;
  std::uint64_t asked_for_ = 0, acknowledged_ = 0; // when it was last looked at
  Time acknowledged_at_{};
  bool idle_ = true; // nothing was under way when it was last looked at
  Time busy_since_{};
  std::array<std::uint64_t, 16> rates_{};
  std::size_t rate_ = 0;
  std::uint32_t smoothed_us_ = 0, variation_us_ = 0;
  std::uint32_t lowest_us_ = UINT32_MAX, lowest_before_us_ = UINT32_MAX;
  Time lowest_since_{};
};

} // namespace parc::daemon
