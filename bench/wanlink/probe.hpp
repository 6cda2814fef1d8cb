// SPDX-License-Identifier: BSD-3-Clause
// Plain TCP sockets that measure an emulated link. Every probe is one process on one emulated host; both
// hosts share the clock of this machine, so one-way delays are exact.
#pragma once

#include "system/error.hpp"

#include <string>
#include <vector>

namespace parc::bench {

// On the receiving host: accepts one connection and gives the one-way delay of every message in ms.
[[nodiscard]] Result<std::vector<double>> receive_stamps();
// On the sending host: sends `count` messages of 8 bytes, one at a time over an idle link.
[[nodiscard]] Result<void> send_stamps(const std::string& host, int count);

// One end of a bulk transfer; both ends of one connection run at once.
struct Flood {
  std::string peer; // empty: accepts
  bool sends = true;
  double warm_up = 2; // seconds before the counting
  double seconds = 4;
};

// Sends, if it does, and receives as fast as TCP does, in one thread; gives the payload received in Mbit/s.
[[nodiscard]] Result<double> flood(const Flood& what);

} // namespace parc::bench
