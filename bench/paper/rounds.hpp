// SPDX-License-Identifier: BSD-3-Clause
// How often two sides do something together, so that a figure takes as long on every network: the first side
// finds out, and tells the other.
#pragma once

#include "bench/figures/places.hpp"

#include <algorithm>
#include <cstdint>

namespace parc::bench {

// Seconds of one round. Both sides call `rounds(times)`, and `agree(times)` gives the second side the first
// one's number and returns when both have it.
template <class Rounds, class Agree> Result<double> time_of_round(const Rounds& rounds, const Agree& agree) {
  constexpr int uncounted = 3, fewest = 3, most = 5000;
  constexpr double enough = 0.1; // seconds
  const double start = seconds_now();
  PARC_TRY(rounds(uncounted));
  std::int64_t times =
      std::clamp(static_cast<int>(enough * uncounted / (seconds_now() - start)), fewest, most);
  PARC_TRY(agree(times));
  const double begin = seconds_now();
  PARC_TRY(rounds(static_cast<int>(times)));
  return (seconds_now() - begin) / static_cast<double>(times);
}

} // namespace parc::bench
