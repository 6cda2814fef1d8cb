// SPDX-License-Identifier: BSD-3-Clause
// What an endpoint receives, and looks for.
#include "fabric/endpoint.hpp"

#include <algorithm>
#include <utility>

namespace parc::fabric {

// Sources that the vector does not know can be any of several: what they send waits until it does.
std::optional<parc_envelope> Endpoint::wanted(const Transfer& transfer) const {
  if (!directed_ || transfer.address == FI_ADDR_UNSPEC) return envelope_of(transfer, PARC_ANY_SOURCE);
  const int peer = vector_->peer(transfer.address);
  if (peer < 0) return {};
  return envelope_of(transfer, peer);
}

Request Endpoint::request_of(Purpose purpose, const Transfer& transfer) {
  return {.endpoint = this,
          .context = transfer.context,
          .flags = FI_RECV | kind_of(transfer),
          .purpose = purpose,
          .reported = !selective_received_ || (transfer.flags & FI_COMPLETION) != 0,
          .buffer = transfer.pieces.empty() ? nullptr : transfer.pieces[0].iov_base,
          .room = length_of(transfer.pieces)};
}

ssize_t Endpoint::receive(const Transfer& transfer) {
  if (!enabled_) return -FI_EOPBADSTATE;
  if (transfer.flags & FI_PEEK) return look(transfer);
  if (transfer.flags & FI_CLAIM) return receive_claimed(transfer);
  const auto envelope = wanted(transfer);
  if (!envelope) return -FI_EINVAL;
  Request request = request_of(Purpose::receive, transfer);
  request.several = !transfer.tagged && (transfer.flags & FI_MULTI_RECV) != 0;
  if (request.several) {
    if (transfer.pieces.size() != 1) return -FI_EINVAL;
    request.peer = envelope->peer;
    request.least_room = least_room.load();
    return receive_several(request);
  }
  return begin_or_refuse(request, {.kind = Start::Kind::read,
                                   .envelope = *envelope,
                                   .pieces = transfer.pieces,
                                   .flags = space_of(transfer)});
}

ssize_t Endpoint::look(const Transfer& transfer) {
  const auto envelope = wanted(transfer);
  if (!envelope) return -FI_EINVAL;
  const Purpose purpose = (transfer.flags & FI_DISCARD) != 0 ? Purpose::peek_and_discard
                          : (transfer.flags & FI_CLAIM) != 0 ? Purpose::peek_and_claim
                                                             : Purpose::peek;
  const unsigned claim = purpose == Purpose::peek ? 0 : PARC_CLAIM;
  return begin(request_of(purpose, transfer), {.kind = Start::Kind::probe,
                                               .envelope = *envelope,
                                               .pieces = {},
                                               .flags = PARC_NOW | space_of(transfer) | claim});
}

ssize_t Endpoint::read_claim(const Request& request, parc_op claim, std::span<const iovec> pieces) {
  return begin(request, {.kind = Start::Kind::read_claimed, .claim = claim, .pieces = pieces});
}

// The context of the look that has claimed a message says which it is.
ssize_t Endpoint::receive_claimed(const Transfer& transfer) {
  parc_op claim = PARC_OP_NULL;
  {
    const std::lock_guard hold(lock_);
    const auto found = claims_.find(transfer.context);
    if (found == claims_.end()) return -FI_EINVAL;
    claim = found->second;
    claims_.erase(found);
  }
  const bool discards = (transfer.flags & FI_DISCARD) != 0;
  const Request request = request_of(discards ? Purpose::discard : Purpose::receive, transfer);
  const ssize_t code = read_claim(request, claim, discards ? std::span<const iovec>() : transfer.pieces);
  if (code == 0) return 0;
  const std::lock_guard hold(lock_);
  claims_.emplace(transfer.context, claim);
  return code;
}

void Endpoint::looked(const Request& request, const parc_completion& completion) {
  const parc_status& status = completion.status;
  if (status.error != PARC_OK) return report(request, status, status.error);
  if (status.source == PARC_ANY_SOURCE) return report(request, status, FI_ENOMSG);
  if (request.purpose == Purpose::peek_and_discard) {
    Request rest = request;
    rest.purpose = Purpose::discard;
    rest.found = std::make_shared<const parc_status>(status);
    if (read_claim(rest, completion.operation, {}) == 0) return;
    return report(request, status, FI_EAGAIN);
  }
  if (request.purpose == Purpose::peek_and_claim) {
    const std::lock_guard hold(lock_);
    claims_[request.context] = completion.operation;
  }
  report(request, status, 0);
}

// ---- Buffers that take several messages (FI_MULTI_RECV): of those for one source one at a time is filled.
// Reads that are under way together may end in another order than their messages were sent in, the shorter
// first, and MPICH's active messages have to come in theirs.

ssize_t Endpoint::begin_several(const Request& request) {
  const iovec room{request.buffer, request.room};
  return begin(request, {.kind = Start::Kind::read,
                         .envelope = envelope_of({}, request.peer),
                         .pieces = {&room, 1},
                         .flags = PARC_UNTAGGED});
}

ssize_t Endpoint::receive_several(const Request& request) {
  {
    const std::lock_guard hold(lock_);
    const auto [others, first] = several_.try_emplace(request.peer);
    if (!first) {
      others->second.push_back(request);
      return 0;
    }
  }
  const ssize_t code = begin_several(request);
  if (code == 0) return 0;
  next_several(request.peer);
  return refuse(request, code, parc_error_detail());
}

// What is left of the buffer takes the next message, and its owner is told when it is given back.
void Endpoint::received_one(const Request& request, const parc_status& status) {
  const bool came = status.error == PARC_OK || status.error == PARC_ETRUNCATE;
  const std::uint64_t used = came ? std::min(status.length, request.room) : 0;
  Request rest = request;
  rest.buffer = static_cast<std::byte*>(request.buffer) + used;
  rest.room -= used;
  if (!came || closing_.load() || rest.room == 0 || rest.room < rest.least_room) {
    give_back(request, status, status.error);
    return next_several(request.peer);
  }
  report(request, status, status.error);
  const ssize_t code = begin_several(rest);
  if (code == 0) return;
  give_back(rest, {}, static_cast<int>(-code));
  next_several(request.peer);
}

void Endpoint::give_back(Request request, const parc_status& status, int error) {
  request.flags |= FI_MULTI_RECV;
  request.reported = true;
  report(request, status, error);
}

void Endpoint::next_several(int peer) {
  for (;;) {
    Request next;
    {
      const std::lock_guard hold(lock_);
      const auto waiting = several_.find(peer);
      if (waiting->second.empty()) {
        several_.erase(waiting);
        return;
      }
      next = std::move(waiting->second.front());
      waiting->second.pop_front();
    }
    const ssize_t code = begin_several(next);
    if (code == 0) return;
    give_back(next, {}, static_cast<int>(-code));
  }
}

bool Endpoint::cancel_waiting(const void* context) {
  Request found;
  {
    const std::lock_guard hold(lock_);
    for (auto& [peer, waiting] : several_) {
      const auto place = std::ranges::find(waiting, context, &Request::context);
      if (place == waiting.end()) continue;
      found = std::move(*place);
      waiting.erase(place);
      break;
    }
  }
  if (found.endpoint == nullptr) return false;
  give_back(found, {}, PARC_ECANCELED);
  return true;
}

} // namespace parc::fabric
