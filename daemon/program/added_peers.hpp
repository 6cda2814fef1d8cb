// SPDX-License-Identifier: BSD-3-Clause
// Rows of a program's table that it adds itself: peers by the addresses that others handed on, which it asks
// for here to hand them on.
#pragma once

#include "daemon/link/endpoint_address.hpp"
#include "daemon/program/completion.hpp"
#include "daemon/program/sessions.hpp"
#include "protocol/pieces.hpp"

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <utility>

namespace parc::daemon {

class AddedPeers {
public:
  struct Needs { // and outlives none of
    protocol::Engine& engine;
    Peers& peers;
    const Sessions::Member& member;  // the program's
    std::function<bool()> has_table; // which rows can be added to
  };
  struct Events { // never when this has gone
    Completed added;
  };
  AddedPeers(Needs needs, Events events) : needs_(std::move(needs)), events_(std::move(events)) {}
  AddedPeers(const AddedPeers&) = delete;

  // The address of the peer in a row, into `memory` as far as that goes.
  [[nodiscard]] Completion name(std::int32_t row, const protocol::Pieces& memory) const;
  // The peer whose address lies in `memory`. None: `added` tells of it, at a step's end.
  [[nodiscard]] std::optional<Completion> add(std::uint64_t operation, const protocol::Pieces& memory);

private:
  [[nodiscard]] Completion reached(const EndpointAddress& address, const Result<std::int32_t>& link);

  const Needs needs_;
  const Events events_;
  std::size_t adding_ = 0;                                                  // peers that it waits for
  std::shared_ptr<AddedPeers*> self_ = std::make_shared<AddedPeers*>(this); // for what comes after it
};

} // namespace parc::daemon
