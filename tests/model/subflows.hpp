// SPDX-License-Identifier: BSD-3-Clause
// A message over several byte streams (protocol/subflows.cpp) as a finite model: its fragments go over the
// first carrier, which resumes (resume.hpp) and so brings all in its order, and over subflows, which end at
// any token and at different times for both sides, and are doubted. Its reader's program has each fragment
// from the moment that it is counted, and leaves when all have come; its writer's program has its memory from
// the moment that it hears of that. Every interleaving is explored.
#pragma once

#include "tests/model/explorer.hpp"

#include <cstdint>

namespace parc::model {

struct Subflows {
  std::uint8_t fragments = 3;
  std::uint8_t subflows = 2; // at a time
  std::uint8_t trains = 2;   // of a fragment each, that one may have unacknowledged
  std::uint8_t breaks = 2;
  std::uint8_t doubts = 1;
  bool keeps_log = false;   // the sender does not deal again what a subflow that ended had under way
  bool writes_over = false; // the receiver puts second copies in place, too
  bool once_decided =
      false; // the receiver decides where a fragment goes when it begins, not for each of its bytes
  bool unnamed = false; // the sender writes the rest of a fragment from memory that is its program's again
  bool silent = false;  // the receiver does not acknowledge messages on the first carrier
};

// Done: the writer's program knows that all has come, and the reader has left. Broken: a byte of either
// program is touched after it has it again, a fragment is counted twice, or the reader's leaving ends a write
// that it has read.
Explored explore(const Subflows& setting);

} // namespace parc::model
