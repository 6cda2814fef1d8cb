// SPDX-License-Identifier: BSD-3-Clause
// Resuming (protocol/carrier.cpp) as a finite model: one side sends a few fragments in trains of one or two,
// both may lose the carrier at any token and at different times, the sender's side makes new ones, and the
// other side may still read an old one. Every interleaving is explored.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>

namespace parc::model {

struct Resuming {
  std::uint8_t fragments = 3;
  std::uint8_t train = 2;  // fragments of one, at most
  std::uint8_t trains = 2; // that may be unacknowledged
  std::uint8_t breaks = 2;
  bool forgetful = false; // the receiver states that nothing is missing of the train that was cut
};

struct ResumingExplored {
  std::size_t states = 0;
  std::size_t ends = 0;              // states in which all is delivered and acknowledged
  std::optional<std::string> stuck;  // nothing can happen, and not all is done
  std::optional<std::string> broken; // lost, doubled, reordered, or an honest statement was refused
};

ResumingExplored explore(const Resuming& setting);

} // namespace parc::model
