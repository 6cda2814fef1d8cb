// SPDX-License-Identifier: BSD-3-Clause
// Puts over two carriers (protocol/puts.cpp) as a finite model: one program puts twice to the same bytes of a
// window, tells its owner, and gets them back. Envelopes travel on the first carrier, which loses nothing
// (resume.hpp); parts of puts and of the get's answer on either, and the second may end at any token, on its
// two sides at different times, and be made again. Every interleaving is explored.
#pragma once

#include "tests/model/explorer.hpp"

#include <cstdint>

namespace parc::model {

struct Windows {
  std::uint8_t parts = 2; // of a put, the first of which comes with its envelope, and of the answer
  std::uint8_t ends = 2;  // of second carriers
  // What must not be: envelopes take effect while a put before them is not in place; the rest of a put is
  // asked for then; parts of what is over are stored; what an ended carrier had is not sent again.
  bool overtakes = false, asks_at_once = false, stores_late = false, forgets = false;
};

// Done: all of it is over, and the window and what was got are what was put last. Broken: the owner was told
// before, or either is anything else in the end.
Explored explore(const Windows& setting);

} // namespace parc::model
