// SPDX-License-Identifier: BSD-3-Clause
// ARCHITECTURE.md's argument of deadlock freedom as a finite model: kernels that exchange one message with
// each peer (or around a ring), over sockets that hold one or two items, with programs that start all their
// sends before their first read. Every interleaving of kernels and programs is explored.
//
// What is modelled: envelope, eager fragments within the credit, want, the rest, acknowledgement; everything
// that a kernel owes is state and needs room in the socket only when it leaves. What is not: lengths,
// matching (one message per pair), several messages per train.
#pragma once

#include "tests/model/explorer.hpp"

#include <cstdint>

namespace parc::model {

enum class Kernels : std::uint8_t {
  parc,     // read whatever has come, write whenever there is room
  blocking, // while there is something to write, write it, and wait for room
};

struct Setting {
  Kernels kernels = Kernels::parc;
  std::uint8_t hosts = 2;
  bool ring = false;          // messages to the next host only
  std::uint8_t room = 1;      // items that a socket holds
  std::uint8_t fragments = 2; // of each message
  std::uint8_t credit = 0;    // fragments that may come before they are asked for
  std::uint8_t overdraft = 0; // fragments that senders send beyond it
};

// Done: all messages are acknowledged. Broken: more is held than the credit.
Explored explore(const Setting& setting);

} // namespace parc::model
