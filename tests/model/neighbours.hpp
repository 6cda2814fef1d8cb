// SPDX-License-Identifier: BSD-3-Clause
// Direct messages between programs of one host (ARCHITECTURE.md, "Neighbours") as a finite model: one or two
// senders, a receiver with one or two threads, and the kernel, which has a message from another host. What
// one stores the others see later, in its order (a store buffer each); a sender may stop for ever at any
// step. Every interleaving is explored.
//
// A message is published in its sender's ring, and the receiver matches it when it drains that; or its sender
// takes a read that the receiver has published, by compare-and-swap on its claim word, and asks the kernel
// for the copy. The kernel takes reads of any source by the same word, once it has said that it must know
// them and been told; one that the dead had taken without having asked fails. The receiver sleeps, and is
// rung for by who publishes, through the kernel.
#pragma once

#include "tests/model/explorer.hpp"

#include <cstdint>

namespace parc::model {

struct Neighbours {
  std::uint8_t senders = 1;
  std::uint8_t messages = 2; // of each; the receiver posts two reads of any source
  std::uint8_t threads = 1;  // of the receiver; the second one only drains
  bool remote = false;       // there is a message from another host
  bool dies = false;         // the first sender may
  bool stays = false;        // a sender that has sent all goes on with something else; else it leaves
  bool barriers = false;     // senders need no fence: a process barrier of the receiver's makes theirs

  // Each leaves out something that is needed.
  bool overtakes = false;          // a sender takes a read although a message of its own is not drained
  bool posts_unlocked = false;     // a read is posted while another thread drains
  bool leaves_claims = false;      // nobody ends the reads that the dead had taken
  bool publishes_unfenced = false; // a sender asks who sleeps before what it has published is seen
  bool sleeps_unfenced = false;    // the receiver looks once more before it is seen to sleep
  bool sleeps_unasked = false;     // and not whether the kernel must know its reads
  bool asks_silently = false;      // the kernel does not ring then
};

// Done: all reads have ended; stuck is one that waits although it need not. Broken: a message was doubled, or
// overtook another one of its sender.
Explored explore(const Neighbours& setting);

} // namespace parc::model
