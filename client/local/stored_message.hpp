// SPDX-License-Identifier: BSD-3-Clause
// A message of a neighbour that no read has asked for yet, copied out of its sender's cell.
#pragma once

#include "client/local/blocks.hpp"
#include "protocol/unexpected.hpp"

namespace parc::client {

struct Neighbour;

struct StoredMessage : protocol::Unexpected<Neighbour> { // of the sender that `pair` is
  shm::Cell cell{};                                      // what its sender's said
  std::byte* body = nullptr;                             // of a whole message that does not fit into it
  bool taken = false;           // of a rendezvous: its writer cannot give it up any more
  std::uint64_t claimed_by = 0; // a probe, whose id names the message
};

using StoredMessages = MessagesIn<StoredMessage>;

} // namespace parc::client
