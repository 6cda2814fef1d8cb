// SPDX-License-Identifier: BSD-3-Clause
// How a program's few cells are shared by its pairs, as a finite model: a sender with messages for a receiver
// that takes none before another one has had all of its own. Messages without a cell wait in a queue of their
// pair; the sender sleeps while nothing can be published, and is rung for by who drains while it says so.
// Every interleaving is explored. (Which stores are seen when: tests/model/neighbours.hpp.)
#pragma once

#include "tests/model/explorer.hpp"

#include <cstdint>

namespace parc::model {

struct Cells {
  std::uint8_t cells = 3;
  std::uint8_t messages = 4; // for each receiver, those for the one that waits first

  // Each leaves out something that is needed.
  bool shared_by_all = false; // a pair may take the last cell
  bool one_queue = false;     // what waits goes in the order of its start
  bool looks_first = false;   // the sender looks for cells, and then says that it wants a bell
};

// Done: all have all. Nothing is broken.
Explored explore(const Cells& setting);

} // namespace parc::model
