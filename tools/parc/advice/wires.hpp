// SPDX-License-Identifier: BSD-3-Clause
// What the wires between hosts are like, by the messages that took them. Clocks of two hosts may differ: what
// the quickest messages of both directions took is shared evenly. Pure.
#pragma once

#include "model/replay.hpp"

#include <cstdint>
#include <vector>

namespace parc::tools {

struct MatchedMessage {
  std::uint32_t from, to; // hosts
  std::uint64_t bytes;
  double posted;      // its read, s
  double begun;       // its write, s
  double first, last; // when these bytes had come, s
};

[[nodiscard]] model::Wires measure_wires(const std::vector<MatchedMessage>& messages, std::size_t hosts);

} // namespace parc::tools
