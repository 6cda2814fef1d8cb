// SPDX-License-Identifier: BSD-3-Clause
// Resuming (protocol/carrier.cpp) as a finite model: one side sends a few fragments in trains of one or two,
// both may lose the carrier at any token and at different times, the sender's side makes new ones, and the
// other side may still read an old one. Every interleaving is explored.
#pragma once

#include "tests/model/explorer.hpp"

#include <cstdint>

namespace parc::model {

struct Resuming {
  std::uint8_t fragments = 3;
  std::uint8_t train = 2;  // fragments of one, at most
  std::uint8_t trains = 2; // that may be unacknowledged
  std::uint8_t breaks = 2;
  bool forgetful = false; // the receiver states that nothing is missing of the train that was cut
};

// Done: all is delivered and acknowledged. Broken: it is lost, doubled or reordered, or an honest statement
// was refused.
Explored explore(const Resuming& setting);

} // namespace parc::model
