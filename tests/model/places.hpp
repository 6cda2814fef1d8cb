// SPDX-License-Identifier: BSD-3-Clause
// Where envelopes wait when their receiver has no place for more messages that nobody reads: one link, on
// which a host writes to several pairs of endpoints, more than there are places for, all before anything is
// read; and a program there that reads in an order of its own. Every interleaving of envelopes, reads and
// notices of what was read is explored.
//
// What is modelled: envelopes in the order of their pair, places counted by sender and receiver apart,
// notices that the receiver owes and that need room in the socket. What is not: payload (model.hpp), carriers
// that end (resume.hpp).
#pragma once

#include "tests/model/explorer.hpp"

#include <cstdint>
#include <vector>

namespace parc::model {

enum class Sharing : std::uint8_t {
  own_and_left, // as protocol::may_send_envelope: some of each pair's own, beyond those what is left for
                // others
  first_come,   // whoever is first has all places of the link
};

struct Places {
  Sharing sharing = Sharing::own_and_left;
  std::uint8_t pairs = 2;
  std::uint8_t messages = 3;   // of each pair
  std::uint8_t own = 2;        // places of each pair
  std::uint8_t of_link = 0;    // places of the link
  std::uint8_t told_after = 1; // so many reads of a pair the receiver tells of, at the latest
  std::uint8_t room = 1;       // items that a socket holds
  // What is read, one after the other: a pair and one of its messages.
  struct Read {
    std::uint8_t pair, message;
  };
  std::vector<Read> reads = {};
};

// Done: all has been read. Broken: the receiver keeps more than it has places for.
Explored explore(const Places& setting);

} // namespace parc::model
