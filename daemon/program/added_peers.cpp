// SPDX-License-Identifier: BSD-3-Clause
#include "daemon/program/added_peers.hpp"

#include "daemon/link/peers.hpp"

#include <algorithm>
#include <spdlog/spdlog.h>
#include <string>

namespace parc::daemon {
namespace {
constexpr std::size_t most_added_at_once = 16; // each may dial for as long as connect_timeout_s
} // namespace

Completion AddedPeers::name(std::int32_t row, const protocol::Pieces& memory) const {
  const auto& [engine, peers, place, has_table] = needs_;
  if (!engine.has_given(place.endpoint, row)) return {PARC_EINVAL};
  const auto address = engine.address(place.endpoint, row);
  const EndpointAddress described = address ? peers.describe(*address) : EndpointAddress{};
  if (described.number == 0) return {PARC_EPEER}; // or the host that it was on is lost
  const std::string text = to_text(described);
  memory.copy_in(0, reinterpret_cast<const std::byte*>(text.data()), std::min(text.size(), memory.size()));
  return {text.size() <= memory.size() ? PARC_OK : PARC_ETRUNCATE, {.source = row, .total = text.size()}};
}

std::optional<Completion> AddedPeers::add(std::uint64_t operation, const protocol::Pieces& memory) {
  std::string text(memory.size(), '\0');
  memory.copy_out(0, reinterpret_cast<std::byte*>(text.data()), text.size());
  const auto address = parse_endpoint_address(text);
  if (!address || address.value().number == protocol::kernel_endpoint) return Completion{PARC_EINVAL};
  if (adding_ == most_added_at_once) return Completion{PARC_EAGAIN};
  ++adding_;
  needs_.peers.connect(address.value(), [weak = std::weak_ptr(self_), operation,
                                         address = address.value()](const Result<std::int32_t>& link) {
    const auto self = weak.lock();
    if (self == nullptr) return;
    --(*self)->adding_;
    (*self)->events_.added(operation, (*self)->reached(address, link));
  });
  return {};
}

Completion AddedPeers::reached(const EndpointAddress& address, const Result<std::int32_t>& link) {
  if (!needs_.has_table()) return {PARC_ECANCELED};
  const Sessions::Member& to = needs_.member;
  if (!link) {
    spdlog::warn("rank {} of job {:x} cannot have {} as a peer: {}", to.rank, to.job, in_words(address),
                 link.error().text);
    return {PARC_EPEER};
  }
  const std::int32_t place = link.value() == this_host ? protocol::here : link.value();
  const std::int32_t row = needs_.engine.add_row(to.endpoint, {place, address.number});
  if (row < 0) return {row == protocol::Engine::no_room_for_row ? PARC_EAGAIN : PARC_EPEER};
  needs_.engine.acquaint(to.endpoint, row);
  return {PARC_OK, {.source = row}};
}

} // namespace parc::daemon
