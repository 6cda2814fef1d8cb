// SPDX-License-Identifier: BSD-3-Clause
// How a program's cells are shared by its pairs: one whose receiver does not drain takes no cell that another
// needs to get on. The first cell of a pair is its own, for as many pairs as cells are kept; of the others
// one may have thrice as many as are left, so that there are always some left (a dynamic threshold).
// Invariant: as long as no more than `kept` pairs have something in flight, one that has nothing gets a cell.
#pragma once

#include "shm/letterbox.hpp"

#include <algorithm>
#include <cassert>

namespace parc::client {

class CellShares {
public:
  static constexpr std::uint32_t kept = shm::most_published / 4;

  // One more for a pair that has so many in flight.
  [[nodiscard]] bool may_take(std::uint64_t in_flight) const {
    if (in_flight == 0) return taken_ < shm::most_published;
    return in_flight <= times_what_is_left * left_to_all();
  }
  [[nodiscard]] bool any_of_others(std::uint64_t in_flight) const { return taken_ != in_flight; }
  void took(std::uint64_t in_flight_before) {
    assert(taken_ < shm::most_published);
    ++taken_;
    if (in_flight_before == 0) ++pairs_;
  }
  void gave(std::uint64_t in_flight_after) {
    assert(taken_ != 0);
    --taken_;
    if (in_flight_after == 0) --pairs_;
  }

private:
  static constexpr std::uint64_t times_what_is_left = 3;
  [[nodiscard]] std::uint64_t left_to_all() const {
    return shm::most_published - std::min(shm::most_published, taken_ + kept - std::min(kept, pairs_));
  }
  std::uint32_t taken_ = 0, pairs_ = 0; // pairs that have something in flight
};

} // namespace parc::client
