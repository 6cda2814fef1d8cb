// SPDX-License-Identifier: BSD-3-Clause
// What two processes, one on each host, do with messages of several lengths: over parc and over plain
// sockets. Each function is one of the two; both measure, and the first one's figures are used.
#pragma once

#include "bench/figures/sockets.hpp"
#include "system/error.hpp"

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>
#include <vector>

namespace parc::bench {

using Sizes = std::vector<std::size_t>;
using Seconds = std::map<std::size_t, double>; // of one repetition, by size

// As many as move `volume` bytes each way, within reason: the same on both sides. Some are not counted
// before.
struct Times {
  std::size_t volume = 64 << 20;
  [[nodiscard]] int of(std::size_t bytes) const {
    return static_cast<int>(std::clamp<std::size_t>(volume / bytes, 5, 400));
  }
  [[nodiscard]] int uncounted(std::size_t bytes) const { return of(bytes) / 10 + 2; }
};

// Over parc, as a rank. Both start a read and a write, and wait for both.
[[nodiscard]] Result<Seconds> exchange(const Sizes& sizes, Times times);
// Over parc, as a rank: one way of a ping-pong.
[[nodiscard]] Result<Seconds> one_way(const Sizes& sizes, Times times);
// Over parc, as a rank: messages of 8 bytes from rank 0 to rank 1, each with the time when it was written, on
// an idle link and then beside one message of `bulk` bytes. What the receiving side saw, in ms.
struct Delays {
  std::vector<double> alone, beside;
};
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(Delays, alone, beside)
[[nodiscard]] Result<Delays> small_beside_bulk(std::size_t bulk);
// The same over plain sockets, a connection for each; the accepting side sends.
[[nodiscard]] Result<Delays> small_beside_bulk(std::size_t bulk, const Endpoint& where);

// Over plain sockets. The accepting side sends first and then receives, the other receives first: what a
// program without a kernel does so that neither blocks the other.
[[nodiscard]] Result<Seconds> ping_pong(const Sizes& sizes, Times times, const Endpoint& where);
// Over plain sockets: each sends and receives whatever its socket takes and has.
[[nodiscard]] Result<Seconds> full_duplex(const Sizes& sizes, Times times, const Endpoint& where);

} // namespace parc::bench
