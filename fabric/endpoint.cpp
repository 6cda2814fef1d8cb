// SPDX-License-Identifier: BSD-3-Clause
#include "fabric/endpoint.hpp"

#include "fabric/info.hpp"
#include "fabric/memory_region.hpp"

#include <algorithm>
#include <array>
#include <cstring>
#include <utility>

namespace parc::fabric {
namespace {

// Bytes of gets and puts that are under way, from which on no more begin (FI_EAGAIN): of a program's own
// memory they are copied, and Open MPI starts as many as its program does. It is what ten gigabits a second
// hold on a path of 50 ms.
constexpr std::uint64_t most_transferring = std::uint64_t{64} << 20;

// As for pieces.
std::uint64_t length_of(std::span<const fi_rma_iov> places) {
  std::uint64_t length = 0;
  for (const fi_rma_iov& place : places) length += std::min<std::uint64_t>(place.len, longest_message + 1);
  return length;
}

// Who waits in MPI hears of an internal error: why this job ends is said.
bool ends_jobs(int error) {
  return error == PARC_EPEER || error == PARC_EKERNEL || error == PARC_EINVAL || error == PARC_ENOMEM ||
         error == PARC_EPLACE;
}

bool counts(Purpose purpose) {
  return purpose == Purpose::send || purpose == Purpose::receive || purpose == Purpose::transfer;
}

// MPICH asks for delivery of all that its endpoint sends, because of its puts. Of messages that would be an
// answer of the receiver's, for which each send would wait for a round trip and a receive.
std::uint64_t flags_of_messages(std::uint64_t caps, std::uint64_t send_flags) {
  return is_for_remote_memory(caps) ? send_flags & ~FI_DELIVERY_COMPLETE : send_flags;
}

} // namespace

Endpoint::Endpoint(Domain& domain, const fi_info& info)
    : Child(domain), send_flags(info.tx_attr ? info.tx_attr->op_flags : 0),
      receive_flags(info.rx_attr ? info.rx_attr->op_flags : 0),
      message_flags(flags_of_messages(info.caps, send_flags)), messages(is_for_messages(info.caps)),
      remote(is_for_remote_memory(info.caps)), directed_((info.caps & FI_DIRECTED_RECV) != 0),
      tells_source_((info.caps & FI_SOURCE) != 0) {}

Endpoint::~Endpoint() {
  for (CompletionQueue* queue : {sent_, received_})
    if (queue) --queue->users;
  for (Counter* counter : {sends_, receives_, gets_, puts_})
    if (counter) --counter->users;
  if (vector_) --vector_->users;
  if (messages) parent.session->has_endpoint.store(false);
  if (remote) parent.session->has_remote_endpoint.store(false);
}

int Endpoint::bind(struct fid* other, std::uint64_t flags) {
  if (enabled_) return -FI_EOPBADSTATE;
  const auto take = [](auto*& place, auto& object) {
    if (place) return -FI_EINVAL;
    place = &object;
    ++object.users;
    return 0;
  };
  // What others do in our memory is not counted: who asks, as MPICH does, has a counter that stands still.
  constexpr std::uint64_t counted = FI_SEND | FI_RECV | FI_READ | FI_WRITE | FI_REMOTE_READ | FI_REMOTE_WRITE;
  int code = 0;
  switch (other->fclass) {
  case FI_CLASS_AV: return take(vector_, object_of<AddressVector>(other));
  case FI_CLASS_EQ: return 0;
  case FI_CLASS_CQ: {
    auto& queue = object_of<CompletionQueue>(other);
    const bool selective = (flags & FI_SELECTIVE_COMPLETION) != 0;
    if (!(flags & (FI_TRANSMIT | FI_RECV))) return -FI_EINVAL;
    if (flags & FI_TRANSMIT) {
      code = take(sent_, queue);
      selective_sent_ = selective;
    }
    if (code == 0 && (flags & FI_RECV)) {
      code = take(received_, queue);
      selective_received_ = selective;
    }
    return code;
  }
  case FI_CLASS_CNTR: {
    auto& counter = object_of<Counter>(other);
    if (!(flags & counted)) return -FI_EINVAL;
    if (flags & FI_SEND) code = take(sends_, counter);
    if (code == 0 && (flags & FI_RECV)) code = take(receives_, counter);
    if (code == 0 && (flags & FI_READ)) code = take(gets_, counter);
    if (code == 0 && (flags & FI_WRITE)) code = take(puts_, counter);
    return code;
  }
  default: return -FI_EINVAL;
  }
}

int Endpoint::enable() {
  if (!vector_) return -FI_ENOAV;
  if (!sent_ && !sends_ && !received_ && !receives_ && !gets_ && !puts_) return -FI_ENOCQ;
  enabled_ = true;
  return 0;
}

int Endpoint::name(void* address, std::size_t* length) {
  Address ours;
  parc_context* const parc = parent.session->parc();
  if (const int code = parc_address_of(parc, parc_rank(parc), ours.text, sizeof ours.text); code != PARC_OK)
    return refused(FI_LOG_EP_CTRL, "an endpoint has no address", code);
  const std::size_t room = std::exchange(*length, sizeof ours);
  if (address) std::memcpy(address, &ours, std::min(room, sizeof ours));
  return room < sizeof ours ? -FI_ETOOSMALL : 0;
}

// What waits for others is given up, other sends are delivered, and nobody hears of it (fi_endpoint(3)). What
// all that was for is nobody's any more when this returns.
bool Endpoint::let_go() {
  closing_.store(true);
  {
    const std::lock_guard hold(lock_);
    for (auto& [peer, buffers] : several_) buffers.clear();
  }
  const auto nothing_under_way = [this] { return under_way_.load() == 0; };
  const auto given_up = [&] {
    parent.session->cancel_all(*this); // one for several messages may have gone on meanwhile
    return nothing_under_way();
  };
  (void)parent.session->wait(given_up, {});
  for (const auto& [context, claim] : std::exchange(claims_, {}))
    (void)read_claim({.endpoint = this, .purpose = Purpose::discard}, claim, {});
  (void)parent.session->wait(nothing_under_way, {});
  return true;
}

ssize_t Endpoint::begin(const Request& request, const Start& start) {
  ++under_way_;
  if (request.purpose == Purpose::transfer) transferring_ += request.room;
  const auto never_began = [&] {
    if (request.purpose == Purpose::transfer) transferring_ -= request.room;
    --under_way_;
  };
  try {
    const bool looks = start.kind == Start::Kind::probe;
    const ssize_t code = looks ? parent.session->look(request, start) : parent.session->begin(request, start);
    if (code != 0) never_began();
    return code;
  } catch (...) { // there is no memory
    never_began();
    throw;
  }
}

// Open MPI takes no notice of what the start of a persistent request returns, which some of its collectives
// use, and waits for its completion: that has the error, where there is one.
ssize_t Endpoint::refuse(const Request& request, ssize_t code, const char* sentence) {
  const bool receives = request.purpose != Purpose::send && request.purpose != Purpose::transfer;
  if (request.anonymous || !(receives ? received_ : sent_)) return code;
  say_once(Failing::operation, sentence);
  report(request, {}, static_cast<int>(-code));
  return 0;
}

ssize_t Endpoint::begin_or_refuse(const Request& request, const Start& start) {
  const ssize_t code = begin(request, start);
  return code == 0 ? 0 : refuse(request, code, parc_error_detail());
}

parc_envelope Endpoint::envelope_of(const Transfer& transfer, int peer) {
  return {.peer = peer,
          .tag = transfer.tagged ? transfer.tag : 0,
          .ignore = transfer.tagged ? transfer.ignore : 0,
          .data = transfer.data};
}

ssize_t Endpoint::send(const Transfer& transfer, bool told) {
  if (!enabled_) return -FI_EOPBADSTATE;
  const int peer = vector_->peer(transfer.address);
  if (peer < 0) {
    FI_WARN(&provider, FI_LOG_EP_DATA, "cannot send to address %zu: it is not in the endpoint's vector\n",
            static_cast<std::size_t>(transfer.address));
    return -FI_EINVAL;
  }
  const bool reported = told && (!selective_sent_ || (transfer.flags & FI_COMPLETION) != 0);
  const bool synchronous = (transfer.flags & (FI_MATCH_COMPLETE | FI_DELIVERY_COMPLETE)) != 0;
  // Nobody expects a completion with no context where a success would have none: Open MPI's acknowledgements.
  const Request request{.endpoint = this,
                        .context = transfer.context,
                        .flags = FI_SEND | kind_of(transfer),
                        .purpose = Purpose::send,
                        .reported = reported,
                        .anonymous = !reported && transfer.context == nullptr,
                        .synchronous = synchronous};
  if (length_of(transfer.pieces) > longest_message) {
    FI_WARN(&provider, FI_LOG_EP_DATA, "cannot send a message of %zu bytes: one has %zu at most\n",
            static_cast<std::size_t>(length_of(transfer.pieces)), static_cast<std::size_t>(longest_message));
    return refuse(request, -FI_EMSGSIZE, "a message is too long: one may have 8 GiB");
  }
  parc_envelope envelope = envelope_of(transfer, peer);
  envelope.ignore = 0; // which fi_tsendmsg has a place for, and no use
  return begin_or_refuse(request, {.kind = Start::Kind::write,
                                   .envelope = envelope,
                                   .pieces = transfer.pieces,
                                   .flags = space_of(transfer) | (synchronous ? PARC_SYNCHRONOUS : 0u) |
                                            ((transfer.flags & FI_REMOTE_CQ_DATA) != 0 ? PARC_WITH_DATA : 0u),
                                   .injected = !told || (transfer.flags & FI_INJECT) != 0});
}

ssize_t Endpoint::cancel(const void* context) {
  if (cancel_waiting(context)) return 0;
  return parent.session->cancel(*this, context) ? 0 : -FI_ENOENT;
}

// Its end says that it is there: what has only left may still have no place.
ssize_t Endpoint::transfer(const RemoteTransfer& transfer) {
  if (!enabled_) return -FI_EOPBADSTATE;
  const int peer = vector_->peer(transfer.address);
  if (peer < 0) return -FI_EINVAL;
  if ((transfer.flags & FI_REMOTE_CQ_DATA) != 0) return -FI_EOPNOTSUPP; // its target hears nothing of it
  const bool injected =
      transfer.kind == Start::Kind::put && (!transfer.told || (transfer.flags & FI_INJECT) != 0);
  const bool brings = transfer.kind == Start::Kind::get || transfer.result != nullptr;
  const bool reported = transfer.told && (!selective_sent_ || (transfer.flags & FI_COMPLETION) != 0);
  const std::uint64_t what = transfer.kind == Start::Kind::atomic ? FI_ATOMIC : FI_RMA;
  Request request{.endpoint = this,
                  .context = transfer.context,
                  .flags = what | (brings ? FI_READ : FI_WRITE),
                  .purpose = Purpose::transfer,
                  .reported = reported,
                  .anonymous = !transfer.told,
                  .buffer = transfer.result,
                  .room = transfer.result != nullptr ? transfer.atomic.width : 0};
  const std::uint64_t length = length_of(transfer.pieces);
  if (transfer.places.empty() || transfer.places.size() > max_pieces) return -FI_EINVAL;
  if (transfer.places.size() > 1 && length_of(transfer.places) != length) return -FI_EINVAL;
  if (length > longest_message || (injected && length > inject_bytes))
    return refuse(request, -FI_EMSGSIZE, "a transfer is too long");
  if (transfer.kind == Start::Kind::get) will_get_into(*parent.session, transfer.descriptor);
  const bool is_bulk = transfer.kind != Start::Kind::atomic;
  if (is_bulk &&
      transferring_.load() > most_transferring) { // who only tries again brings them to their end by that
    if (const int code = parent.session->progress(0); code < 0) return code;
    if (transferring_.load() > most_transferring) return -FI_EAGAIN;
  }
  if (transfer.result == nullptr) request.room = length;
  Start start{.kind = transfer.kind,
              .place = {peer, transfer.places[0].key, transfer.places[0].addr},
              .atomic = transfer.atomic,
              .pieces = transfer.pieces,
              .flags = transfer.kind == Start::Kind::put ? PARC_SYNCHRONOUS : 0u};
  if (!injected) return begin_parts(request, start, transfer);
  const auto copied = std::make_shared<std::byte[]>(length);
  std::size_t at = 0;
  for (const iovec& piece : transfer.pieces) {
    if (piece.iov_len != 0) std::memcpy(copied.get() + at, piece.iov_base, piece.iov_len);
    at += piece.iov_len;
  }
  const iovec whole{copied.get(), length};
  start.pieces = {&whole, 1};
  request.copied = copied;
  return begin_parts(request, start, transfer);
}

// What has begun cannot be taken back: where a later one cannot begin, their common end says so.
ssize_t Endpoint::begin_parts(Request request, Start start, const RemoteTransfer& transfer) {
  if (transfer.places.size() == 1) return begin_or_refuse(request, start);
  const auto parts = parts_of(transfer.places, transfer.kind == Start::Kind::put);
  if (parts.empty()) return begin_or_refuse(request, start); // nothing, at the first place
  request.parts = std::make_shared<PartsLeft>(parts.size(), request.room);
  LocalPieces local(start.pieces);
  std::vector<std::vector<iovec>> pieces;
  pieces.reserve(parts.size());
  for (const RemotePart& part : parts) pieces.push_back(local.next(part.length));
  for (std::size_t i = 0; i < parts.size(); ++i) {
    const RemotePart& part = parts[i];
    start.place.window = part.window;
    start.place.offset = part.offset;
    start.row = part.row;
    start.stride = part.stride;
    start.pieces = pieces[i];
    request.room = part.length;
    ssize_t code = 0;
    try {
      code = begin(request, start);
    } catch (const std::bad_alloc&) {
      code = -FI_ENOMEM;
    }
    if (code == 0) continue;
    if (i == 0) return refuse(request, code, parc_error_detail());
    if (request.parts->end(parts.size() - i, static_cast<int>(-code))) report_parts(request);
    break;
  }
  return 0;
}

void Endpoint::report_parts(const Request& request) {
  parc_status status{};
  status.length = request.parts->bytes;
  report(request, status, request.parts->error());
}

void Endpoint::ended(const Request& request, const parc_completion& completion) {
  const parc_status& status = completion.status;
  switch (request.purpose) {
  case Purpose::peek:
  case Purpose::peek_and_claim:
  case Purpose::peek_and_discard: looked(request, completion); break;
  case Purpose::discard:
    report(request, request.found ? *request.found : parc_status{},
           status.error == PARC_ETRUNCATE ? 0 : status.error);
    break;
  case Purpose::send: report(request, status, status.error); break;
  case Purpose::await: break; // nobody's
  case Purpose::transfer:
    if (status.error == PARC_OK && request.buffer) std::memcpy(request.buffer, &status.data, request.room);
    if (!request.parts)
      report(request, status, status.error);
    else if (request.parts->end(1, status.error))
      report_parts(request);
    transferring_ -= request.room;
    break;
  case Purpose::receive:
    if (request.several)
      received_one(request, status);
    else
      report(request, status, status.error);
    break;
  }
  --under_way_; // nothing of this endpoint is touched any more: it may be waiting for that to be closed
}

// `error` is a PARC_E* or, positive, one of libfabric's.
void Endpoint::report(const Request& request, const parc_status& status, int error) {
  if (closing_.load()) return;
  const bool transfers = request.purpose == Purpose::transfer,
             sends = request.purpose == Purpose::send || transfers;
  Counter* const counter = transfers ? ((request.flags & FI_READ) != 0 ? gets_ : puts_)
                           : sends   ? sends_
                                     : receives_;
  if (counter && counts(request.purpose)) counter->count(error != 0);
  CompletionQueue* const queue = sends ? sent_ : received_;
  if (ends_jobs(error)) say_once(Failing::operation, parent.session->why(error).c_str());
  if (error != 0 && request.anonymous) {
    FI_WARN(&provider, FI_LOG_EP_DATA, "a message that nobody waits for was lost: %s\n",
            parc_error_string(error));
    return;
  }
  if (!queue || (error == 0 && !request.reported)) return;
  Completion completion{.entry = {.op_context = request.context,
                                  .flags = request.flags,
                                  .len = status.length,
                                  .buf = request.buffer,
                                  .data = 0,
                                  .tag = 0},
                        .error = error};
  if (!sends) {
    if (status.has_data != 0) completion.entry.flags |= FI_REMOTE_CQ_DATA;
    completion.entry.data = status.data;
    completion.entry.tag = std::uint64_t{status.context} << 32 | static_cast<std::uint32_t>(status.tag);
    if (request.purpose == Purpose::receive && status.length > request.room) {
      completion.entry.len = request.room;
      completion.missed = status.length - request.room;
    }
    if (tells_source_ && status.source >= 0) completion.source = vector_->find(status.source);
  }
  queue->add(completion);
}

namespace {

// There is one.
bool is_least_room(int level, int name) {
  return level == FI_OPT_ENDPOINT && name == FI_OPT_MIN_MULTI_RECV;
}

int get_option(fid* of, int level, int name, void* value, std::size_t* length) {
  if (!is_least_room(level, name)) return -FI_ENOPROTOOPT;
  const std::size_t least = object_of<Endpoint>(of).least_room.load();
  if (std::exchange(*length, sizeof least) < sizeof least) return -FI_ETOOSMALL;
  std::memcpy(value, &least, sizeof least);
  return 0;
}

int set_option(fid* of, int level, int name, const void* value, std::size_t length) {
  if (!is_least_room(level, name)) return -FI_ENOPROTOOPT;
  std::size_t least = 0;
  if (length != sizeof least) return -FI_EINVAL;
  std::memcpy(&least, value, sizeof least);
  object_of<Endpoint>(of).least_room.store(least);
  return 0;
}

fi_ops_ep endpoint_calls{
    .size = sizeof(fi_ops_ep),
    .cancel = [](fid* of, void* context) { return object_of<Endpoint>(of).cancel(context); },
    .getopt = get_option,
    .setopt = set_option,
    .tx_ctx = [](fid_ep*, int, fi_tx_attr*, fid_ep**, void*) { return -FI_ENOSYS; },
    .rx_ctx = [](fid_ep*, int, fi_rx_attr*, fid_ep**, void*) { return -FI_ENOSYS; },
    .rx_size_left = [](fid_ep*) -> ssize_t { return -FI_ENOSYS; },
    .tx_size_left = [](fid_ep*) -> ssize_t { return -FI_ENOSYS; },
};

fi_ops_cm name_calls{
    .size = sizeof(fi_ops_cm),
    .setname = [](fid*, void*, std::size_t) { return -FI_ENOSYS; },
    .getname = [](fid* of, void* address,
                  std::size_t* length) { return object_of<Endpoint>(of).name(address, length); },
    .getpeer = [](fid_ep*, void*, std::size_t*) { return -FI_ENOSYS; },
    .connect = [](fid_ep*, const void*, const void*, std::size_t) { return -FI_ENOSYS; },
    .listen = [](fid_pep*) { return -FI_ENOSYS; },
    .accept = [](fid_ep*, const void*, std::size_t) { return -FI_ENOSYS; },
    .reject = [](fid_pep*, fid*, const void*, std::size_t) { return -FI_ENOSYS; },
    .shutdown = [](fid_ep*, std::uint64_t) { return -FI_ENOSYS; },
    .join = [](fid_ep*, const void*, std::uint64_t, fid_mc**, void*) { return -FI_ENOSYS; },
};

} // namespace

namespace {

// Of this process, by its kernel: who has another way to remote memory takes that, where it may not.
bool may_reach_memory(parc_context* parc) {
  static const std::uint64_t word = 0;
  for (std::uint64_t number = 0;; ++number) {
    const int code = parc_expose(parc, number, const_cast<std::uint64_t*>(&word), sizeof word, PARC_MAY_GET);
    if (code == PARC_OK) (void)parc_unexpose(parc, number);
    if (code == PARC_EINVAL) continue; // it is in use
    if (code != PARC_OK) (void)refused(FI_LOG_EP_CTRL, "there is no remote memory", code);
    return code == PARC_OK;
  }
}

} // namespace

int open_endpoint(fid_domain* domain, fi_info* info, fid_ep** endpoint, void* context) {
  auto& in = object_of<Domain>(domain);
  const bool messages = is_for_messages(info->caps), remote = is_for_remote_memory(info->caps);
  const bool second = messages && in.session->has_endpoint.exchange(true);
  const bool second_remote = !second && remote && in.session->has_remote_endpoint.exchange(true);
  if (second || second_remote) {
    if (messages && !second) in.session->has_endpoint.store(false);
    const char* const what = second ? "messages" : "remote memory";
    FI_WARN(&provider, FI_LOG_EP_CTRL, "this process has an endpoint for %s open already: there can be one\n",
            what);
    return -FI_EBUSY;
  }
  const auto complete = [](Endpoint& made) {
    if (made.remote && !may_reach_memory(made.parent.session->parc())) {
      // MPICH has no other way, and does not say why.
      if (made.messages) say_once(Failing::memory, parc_error_detail());
      return -FI_EOPNOTSUPP;
    }
    made.ops = &endpoint_calls;
    made.cm = &name_calls;
    if (made.remote) {
      made.rma = &remote_memory_calls;
      made.atomic = &atomic_calls;
    }
    if (made.messages) {
      made.msg = &message_calls;
      made.tagged = &tagged_calls;
    }
    return 0;
  };
  return open_object<Endpoint>(FI_CLASS_EP, context, endpoint, complete, in, *info);
}

} // namespace parc::fabric
