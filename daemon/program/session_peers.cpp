// SPDX-License-Identifier: BSD-3-Clause
// Rows of a program's table that it adds itself: peers by the addresses that others handed on.
#include "daemon/link/peers.hpp"
#include "daemon/program/session.hpp"
#include "include/parc/parc.h"

#include <spdlog/spdlog.h>

namespace parc::daemon {
namespace {
constexpr std::size_t most_added_at_once = 16; // each may dial for as long as connect_timeout_s
} // namespace

// The memory for, or of, an address; none: the request has been answered. It is used before anything else is
// done, so its segment need not be held.
std::optional<protocol::Pieces> Session::take_text(const shm::Request& request, std::uint64_t most) {
  if (take_slot(request, shm::is_read) == nullptr) return {};
  protocol::Pieces memory;
  Extents::Used used;
  if (request.pieces == 0 && request.length <= most &&
      extents_.resolve(request.address, request.length, memory, used))
    return memory;
  answer(shm::slot_of(request.id), PARC_EINVAL);
  return {};
}

void Session::name_peer(const shm::Request& request) {
  const auto memory = take_text(request);
  if (!memory) return;
  const std::uint64_t slot = shm::slot_of(request.id);
  if (!engine_.has_given(place_.endpoint, request.peer)) return answer(slot, PARC_EINVAL);
  const auto address = engine_.address(place_.endpoint, request.peer);
  const EndpointAddress described = address ? peers_.describe(*address) : EndpointAddress{};
  if (described.number == 0) return answer(slot, PARC_EPEER); // or the host that it was on is lost
  const std::string text = to_text(described);
  memory->copy_in(0, reinterpret_cast<const std::byte*>(text.data()), std::min(text.size(), memory->size()));
  complete(slot, {.source = request.peer, .total = text.size()},
           text.size() <= memory->size() ? PARC_OK : PARC_ETRUNCATE);
}

void Session::add_peer(const shm::Request& request) {
  const auto memory = take_text(request);
  if (!memory) return;
  const std::uint64_t slot = shm::slot_of(request.id), generation = slots_[slot].generation;
  std::string text(memory->size(), '\0');
  memory->copy_out(0, reinterpret_cast<std::byte*>(text.data()), text.size());
  const auto address = parse_endpoint_address(text);
  if (!address || address.value().number == protocol::kernel_endpoint) return answer(slot, PARC_EINVAL);
  if (adding_ == most_added_at_once) return answer(slot, PARC_EAGAIN);
  ++adding_;
  peers_.connect(address.value(), [self = std::weak_ptr(self_), slot, generation,
                                   address = address.value()](const Result<std::int32_t>& link) {
    if (const auto session = self.lock()) (*session)->peer_reached(slot, generation, address, link);
  });
}

void Session::peer_reached(std::uint64_t slot, std::uint64_t generation, const EndpointAddress& address,
                           const Result<std::int32_t>& link) {
  --adding_;
  if (state_ == State::over || !slots_[slot].busy || slots_[slot].generation != generation) return;
  if (state_ == State::leaving) return answer(slot, PARC_ECANCELED);
  if (!link) {
    spdlog::warn("rank {} of job {:x} cannot have {} as a peer: {}", place_.rank, place_.job,
                 in_words(address), link.error().text);
    return answer(slot, PARC_EPEER);
  }
  const std::int32_t place = link.value() == this_host ? protocol::here : link.value();
  const std::int32_t row = engine_.add_row(place_.endpoint, {place, address.number});
  if (row < 0) return answer(slot, row == protocol::Engine::no_room_for_row ? PARC_EAGAIN : PARC_EPEER);
  complete(slot, {.source = row}, PARC_OK);
}

} // namespace parc::daemon
