// SPDX-License-Identifier: BSD-3-Clause
#include "client/calls/starter.hpp"

#include "client/base/failure.hpp"
#include "client/base/pages.hpp"
#include "client/base/pieces.hpp"

#include <algorithm>

namespace parc::client {
namespace {

// The flags of parc.h are bits of MessageFlags.
constexpr MessageFlags flags_of(unsigned flags) {
  return static_cast<MessageFlags>(flags);
}
static_assert(flags_of(PARC_FROM_END) == MessageFlags::from_end);
static_assert(flags_of(PARC_EARLY) == MessageFlags::early);
static_assert(flags_of(PARC_SYNCHRONOUS) == MessageFlags::synchronous);
static_assert(flags_of(PARC_NOW) == MessageFlags::no_wait);
static_assert(flags_of(PARC_CLAIM) == MessageFlags::claim);
static_assert(flags_of(PARC_QUEUED) == MessageFlags::queued);
static_assert(flags_of(PARC_UNTAGGED) == MessageFlags::untagged);
static_assert(flags_of(PARC_WITH_DATA) == MessageFlags::with_data);

constexpr unsigned known_of_all = PARC_QUEUED | PARC_UNTAGGED;
constexpr unsigned known_of_reads = known_of_all | PARC_FROM_END | PARC_EARLY;
constexpr unsigned known_of_writes = known_of_reads | PARC_SYNCHRONOUS | PARC_WITH_DATA;
constexpr unsigned known_of_probes = known_of_all | PARC_NOW | PARC_CLAIM;

// Those that the kernel, and neighbours, have to know.
constexpr MessageFlags flags_of_requests = ~MessageFlags::early;

// What is shorter is sooner copied than its pages are looked up.
constexpr std::uint64_t least_in_own_memory = std::uint64_t{32} << 10;

bool has_bytes(const iovec& piece) {
  return piece.iov_len != 0;
}

} // namespace

Result<parc_op> Starter::read(const parc_envelope& envelope, std::span<const iovec> pieces, unsigned flags,
                              bool blocking) {
  PARC_TRY(check_peer(envelope.peer, true));
  Message message;
  PARC_TRY(check(message, envelope, pieces, flags, known_of_reads));
  message.blocking = blocking;
  const bool of_neighbour =
      may_name_own_memory(message) && envelope.peer >= 0 && neighbours_->inbox().hears(envelope.peer);
  PARC_TRY(prepare_read(message, of_neighbour));
  return ask(message, shm::RequestKind::read);
}

Result<parc_op> Starter::read_claimed(parc_op claim, std::span<const iovec> pieces, unsigned flags) {
  const parc_envelope whoever{PARC_ANY_SOURCE, 0, UINT64_MAX, 0};
  Message message;
  PARC_TRY(check(message, whoever, pieces, flags, known_of_reads));
  const auto probe = static_cast<std::uint64_t>(claim);
  const bool of_neighbour = neighbours_ && neighbours_->inbox().has_claimed(probe);
  PARC_TRY(prepare_read(message, of_neighbour));
  PARC_TRY(give_memory(message));
  if (!of_neighbour) {
    message.flags |= MessageFlags::claimed;
    shm::Request request = request_of(shm::RequestKind::read, message);
    request.read.claim = probe;
    return send(request, message);
  }
  message.local = true;
  PARC_TRY(id, operations_.begin(shm::RequestKind::read, message));
  shm::Request request = request_of(shm::RequestKind::read, message);
  request.id = static_cast<std::uint64_t>(id);
  neighbours_->inbox().post_claimed(request, probe);
  return id;
}

// What fills its memory may be used before it is whole.
void Starter::prepare_release(Message& message, shm::RequestKind kind) {
  settle(message.pieces, Guards::Use::stores);
  message.order = order_.load(std::memory_order_relaxed);
  message.flags |= when(message.order == Order::down, MessageFlags::from_end);
  message.releases = guards_.wanted(kind);
  if (!message.is(MessageFlags::early) && message.releases && message.length >= least_released)
    message.pays = guards_.should_pay(message.pieces[0].iov_base);
}

// `of_neighbour`: nobody else's message can answer it.
Result<void> Starter::prepare_read(Message& message, bool of_neighbour) {
  message.straight = neighbours_ && !neighbours_->pages_are_closed() &&
                     !guards_.wanted(shm::RequestKind::read) && !message.is(MessageFlags::early);
  if (guards_.any()) guards_.settle_gets();
  prepare_release(message, shm::RequestKind::read);
  if (of_neighbour && may_name_own_memory(message)) {
    name_own_memory(message);
    return success();
  }
  return locate_read(message);
}

Result<parc_op> Starter::write(const parc_envelope& envelope, std::span<const iovec> pieces, unsigned flags,
                               bool blocking) {
  PARC_TRY(check_peer(envelope.peer, false));
  Message message;
  PARC_TRY(check(message, envelope, pieces, flags, known_of_writes));
  message.blocking = blocking;
  settle(pieces, Guards::Use::loads);
  if (neighbours_ && fits_a_body(message) && !guards_.any() && puts_are_settled() && !ring_.dead()) {
    PARC_TRY(id, tell_at_once(message));
    if (id != PARC_OP_NULL) return id;
  }
  PARC_TRY(direct, reaches(envelope.peer));
  if (direct) return tell(message);
  PARC_TRY(locate_write(message));
  // What comes from such a neighbour, or from this program itself, comes by the kernel, too.
  if (neighbours_ && neighbours_->may_send(envelope.peer)) neighbours_->inbox().share_reads();
  return send(shm::RequestKind::write, message);
}

bool Starter::write_at_once(const parc_envelope& envelope, std::span<const iovec> pieces, unsigned flags) {
  if (!neighbours_ || operations_.traced() || guards_.any() || !puts_are_settled() || ring_.dead() ||
      !check_peer(envelope.peer, false))
    return false;
  Message message;
  if (!check(message, envelope, pieces, flags, known_of_writes) || !fits_a_body(message)) return false;
  return neighbours_->write_at_once(message);
}

bool Starter::read_at_once(const parc_envelope& envelope, const iovec& buffer, parc_status& status) {
  const bool may_release =
      guards_.wanted(shm::RequestKind::read) && buffer.iov_len >= least_released && !guards_.pauses();
  if (!neighbours_ || operations_.traced() || guards_.any() || may_release || ring_.dead() ||
      envelope.peer == PARC_ANY_SOURCE || !check_peer(envelope.peer, false))
    return false;
  Message message;
  if (!check(message, envelope, {&buffer, 1}, 0, 0)) return false;
  auto how = Inbox::AtOnce::not_yet;
  const auto known = [&] {
    how = neighbours_->inbox().take_at_once(envelope, buffer, status);
    return how != Inbox::AtOnce::not_yet;
  };
  // A long message comes to a read that is posted.
  if (buffer.iov_len > shm::huge_body)
    (void)known();
  else
    (void)sleep_.poll_neighbour(known);
  return how == Inbox::AtOnce::taken;
}

Result<parc_op> Starter::probe(const parc_envelope& envelope, unsigned flags) {
  PARC_TRY(check_peer(envelope.peer, true));
  Message message;
  PARC_TRY(check(message, envelope, {}, flags, known_of_probes));
  if (guards_.any()) guards_.settle_gets();
  if (message.is(MessageFlags::no_wait) && !look_around()) return refused();
  return ask(message, shm::RequestKind::probe);
}

// As in any call that looks: who looks again and again may make no other. False: the kernel has gone.
bool Starter::look_around() {
  sleep_.look();
  (void)late_reads_.serve();
  sleep_.looked_in_vain();
  return !ring_.dead() && !sleep_.kernel_went();
}

bool Starter::finds_nothing(const parc_envelope& envelope, unsigned flags) {
  Message message;
  if ((flags & PARC_NOW) == 0 || !neighbours_ || operations_.traced() || !check_peer(envelope.peer, true) ||
      !check(message, envelope, {}, flags, known_of_probes) || !look_around())
    return false;
  return neighbours_->may_send(envelope.peer)
             ? neighbours_->inbox().finds_nothing(request_of(shm::RequestKind::probe, message))
             : ring_.nothing_unread();
}

// The kernel puts it into memory of the arena, from where the wait brings it.
Result<parc_op> Starter::name_peer(int peer, const iovec& text) {
  PARC_TRY(check_peer(peer, false));
  Message message{.envelope = {peer, 0, 0, 0}, .length = text.iov_len, .pieces = {&text, 1}};
  PARC_TRY(block, operations_.allocate(text.iov_len));
  name_block(message, block);
  return send(shm::RequestKind::address_of, message);
}

Result<parc_op> Starter::add_peer(std::string_view address) {
  if (address.size() > shm::max_address)
    return error(PARC_EINVAL, "an address has at most {} bytes", shm::max_address);
  Message message{.envelope = {PARC_ANY_SOURCE, 0, 0, 0}, .length = address.size()};
  PARC_TRY(block, operations_.allocate(address.size()));
  name_block(message, block);
  address.copy(static_cast<char*>(block), address.size());
  return send(shm::RequestKind::add_peer, message);
}

// Whoever is started may speak to anybody: causes go first.
Result<parc_op> Starter::spawn(std::string_view texts, int count, const iovec& room) {
  if (guards_.any()) guards_.settle_begun();
  Message message{.length = room.iov_len, .pieces = {&room, 1}};
  PARC_TRY(block, operations_.allocate(room.iov_len));
  name_block(message, block);
  texts.copy(static_cast<char*>(block), texts.size());
  shm::Request request = request_of(shm::RequestKind::spawn, message);
  request.spawned = {texts.size(), static_cast<std::uint64_t>(count)};
  return send(request, message);
}

Result<parc_op> Starter::signal(int peer, int number) {
  PARC_TRY(check_peer(peer, false));
  if (number < 0) return error(PARC_EINVAL, "there is no signal {}", number);
  if (guards_.any()) guards_.settle_begun();
  const Message message{.envelope = {peer, 0, 0, 0}};
  shm::Request request = request_of(shm::RequestKind::signal, message);
  request.signalled.number = static_cast<std::uint64_t>(number);
  return send(request, message);
}

Result<parc_op> Starter::exit_of(int peer, unsigned flags) {
  PARC_TRY(check_peer(peer, false));
  Message message;
  PARC_TRY(check(message, {peer, 0, 0, 0}, {}, flags, PARC_QUEUED));
  return send(shm::RequestKind::exit_of, message);
}

Result<parc_op> Starter::barrier_read(int peer, std::uint64_t tag) {
  Message message{.envelope = {peer, tag, 0, 0}, .blocking = true};
  set_flags(message, MessageFlags::barrier);
  return ask(message, shm::RequestKind::read);
}

Result<parc_op> Starter::barrier_write(int peer, std::uint64_t tag) {
  Message message{.envelope = {peer, tag, 0, 0}, .loose = operations_.peer_answers(peer)};
  set_flags(message, MessageFlags::barrier);
  PARC_TRY(direct, reaches(peer));
  if (direct) return tell(message);
  return send(shm::RequestKind::write, message);
}

// Somebody may be waiting for it. One that has finished, or whose wait has let it go, is beyond recall.
// Leaving ends the reads; a write will be delivered, and nobody need wait for that.
Result<void> Starter::cancel(parc_op id) {
  if (!operations_.is_held(id)) return success();
  if (neighbours_ && Operations::is_write(id) && !operations_.is_put(id)) {
    const int peer = operations_.peer_of(id);
    if (neighbours_->cancel_waiting(id, peer) || !neighbours_->may_cancel_write(id, peer)) return success();
  }
  if (neighbours_ && neighbours_->inbox().cancel(id)) return success();
  shm::Request request{};
  request.kind = shm::RequestKind::cancel;
  request.id = static_cast<std::uint64_t>(id);
  if (ring_.push(request)) return success();
  if (!ring_.closed()) return refused();
  operations_.loosen(id);
  return success();
}

Error Starter::refused() const {
  if (ring_.closed()) return has_left();
  return error(PARC_EKERNEL, "the kernel of this host (parcd) has gone or has ended this program's session "
                             "(parc errors may say why)");
}

Result<void> Starter::check_peer(int peer, bool any) const {
  if (peer == PARC_ANY_SOURCE && any) return success();
  if (peer == PARC_ANY_SOURCE)
    return error(PARC_EINVAL, "a write needs a rank to go to: PARC_ANY_SOURCE is for reads and probes");
  if (peer < 0 || !operations_.knows(peer))
    return error(PARC_EINVAL, "there is no rank {} in this job of {}", peer, ranks_);
  return success();
}

// In place: it is of some size, and made for every message.
Result<void> Starter::check(Message& message, const parc_envelope& envelope, std::span<const iovec> pieces,
                            unsigned flags, unsigned known) {
  if (flags & ~known) return error(PARC_EINVAL, "flags {:#x} are unknown here", flags & ~known);
  if (pieces.size() > shm::max_pieces)
    return error(PARC_EINVAL, "a message of {} pieces is too much: it may have {}", pieces.size(),
                 shm::max_pieces);
  for (const auto& piece : pieces) {
    if (!piece.iov_base && piece.iov_len != 0)
      return error(PARC_EINVAL, "a buffer of {} bytes is a null pointer", piece.iov_len);
    if (piece.iov_len > shm::max_message - message.length)
      return error(PARC_EINVAL, "the message is too long: one may have {} bytes", shm::max_message);
    message.length += piece.iov_len;
  }
  message.envelope = envelope;
  message.pieces = pieces;
  set_flags(message, flags_of(flags) | when(envelope.data != 0, MessageFlags::with_data));
  return success();
}

void Starter::set_flags(Message& message, MessageFlags flags) {
  message.flags = flags;
  message.space = protocol::space_of(flags);
}

void Starter::settle(std::span<const iovec> pieces, Guards::Use use) {
  if (!guards_.any()) return;
  for (const auto& piece : pieces) guards_.settle(piece.iov_base, piece.iov_len, use);
}

bool Starter::in_arena(const iovec& piece) const {
  return piece.iov_len == 0 || arena_.contains(piece.iov_base, piece.iov_len);
}

// Memory that the kernel has mapped, adopted now where that is asked for.
bool Starter::is_direct(Message& message, bool may_adopt) {
  const bool look_up = may_adopt || message.length >= least_in_own_memory;
  return std::ranges::all_of(message.pieces, [&](const iovec& piece) {
    return in_arena(piece) ||
           (look_up && adoption_.use(piece.iov_base, piece.iov_len, may_adopt, message.adopted));
  });
}

Result<void> Starter::locate_read(Message& message) {
  if (message.length == 0) return success();
  const bool asked =
      guards_.possible() && (message.is(MessageFlags::early) || (message.releases && message.pays));
  const bool may_adopt = asked && message.length >= least_released;
  const auto since = may_adopt ? Clock::now() : Clock::time_point();
  const bool direct = is_direct(message, may_adopt);
  if (may_adopt && !message.is(MessageFlags::early)) guards_.spend(Clock::now() - since);
  if (direct) {
    auto named = name_directly(message);
    if (!named) adoption_.end_use(message.adopted);
    return named;
  }
  adoption_.end_use(std::exchange(message.adopted, {}));
  auto block = operations_.allocate(message.length);
  if (block) {
    name_block(message, block.value());
  } else if (block.error().code == PARC_ENOMEM) {
    message.late = true;
    message.listed = shm::no_memory_yet;
  } else {
    return std::move(block).error();
  }
  return success();
}

// Of a read that nobody else's memory can wait for: that of its message is wanted at once.
Result<void> Starter::give_memory(Message& message) {
  if (!std::exchange(message.late, false)) return success();
  message.listed = 0;
  PARC_TRY(block, late_reads_.allocate(message.length));
  name_block(message, block);
  return success();
}

// Of a write whose bytes lie in a copy. What is queued nobody waits for, as those are that keep the network's
// pace where much is held (HandOver::keeps_pace): there its end is told when the network has it.
bool Starter::may_be_let_go(const Message& message) const {
  return !message.is(MessageFlags::synchronous) && operations_.peer_answers(message.envelope.peer) &&
         !(message.is(MessageFlags::queued) && room_.holds_plenty());
}

Result<void> Starter::locate_write(Message& message) {
  message.loose = may_be_let_go(message);
  if (message.length == 0 || (message.length <= protocol::max_unawaited && locate_short_write(message)))
    return success();
  if (std::ranges::all_of(message.pieces, [this](const iovec& piece) { return in_arena(piece); })) {
    message.loose = false;
    return name_directly(message);
  }
  PARC_TRY(block, late_reads_.allocate_for_write(message.length));
  name_block(message, block);
  gather(static_cast<std::byte*>(block), message.pieces, 0, message.length);
  message.loose = message.loose && room_.reserve(message.length);
  message.held = message.loose ? message.length : 0;
  return success();
}

// Only where its wait can return at once, and where there is a place for the copy without asking the kernel.
bool Starter::locate_short_write(Message& message) {
  if (!message.loose || !room_.reserve(message.length)) return false;
  void* const block = arena_.allocate_from_what_is_there(message.length);
  if (!block) {
    room_.free(message.length);
    return false;
  }
  name_block(message, block);
  message.held = message.length;
  gather(static_cast<std::byte*>(block), message.pieces, 0, message.length);
  return true;
}

void Starter::name_block(Message& message, void* block) {
  message.block = block;
  message.place = address_of(block);
}

// One piece is named in the request; more are listed in shared memory, the empty ones left out.
Result<void> Starter::name_directly(Message& message) {
  const auto count = std::count_if(message.pieces.begin(), message.pieces.end(), has_bytes);
  if (count == 1) {
    message.place =
        address_of(std::find_if(message.pieces.begin(), message.pieces.end(), has_bytes)->iov_base);
    return success();
  }
  PARC_TRY(memory, late_reads_.allocate(static_cast<std::size_t>(count) * sizeof(shm::Piece)));
  message.list = memory;
  message.place = address_of(memory);
  message.listed = static_cast<std::uint16_t>(count);
  auto* next = static_cast<shm::Piece*>(memory);
  for (const auto& piece : message.pieces)
    if (has_bytes(piece)) *next++ = {address_of(piece.iov_base), piece.iov_len};
  return success();
}

// Of a message between neighbours. What may be released early has memory that can be guarded; and what is
// adopted, for whatever operation, the kernel must not reach meanwhile.
bool Starter::may_name_own_memory(const Message& message) const {
  return message.length >= least_in_own_memory && message.pieces.size() == 1 && neighbours_ &&
         neighbours_->own_memory_is_reached() && !guards_.wanted(shm::RequestKind::get) &&
         !message.is(MessageFlags::early) && !in_arena(message.pieces[0]);
}

void Starter::name_own_memory(Message& message) {
  message.place = address_of(message.pieces[0].iov_base);
  message.listed = shm::in_own_memory;
}

shm::Request Starter::request_of(shm::RequestKind kind, const Message& message) {
  shm::Request request{};
  request.kind = kind;
  request.flags = message.flags & flags_of_requests;
  request.space = message.space;
  request.pieces = message.listed;
  request.peer = message.envelope.peer;
  if (kind == shm::RequestKind::write)
    request.write = {message.envelope.tag, message.envelope.data, 0};
  else if (kind == shm::RequestKind::read || kind == shm::RequestKind::probe)
    request.read = {message.envelope.tag, message.envelope.ignore, 0};
  request.address = message.place;
  request.length = message.length;
  return request;
}

Result<bool> Starter::reaches(int peer) {
  if (!neighbours_) return false;
  return neighbours_->reaches(peer);
}

// A read or probe, of whoever may answer it.
Result<parc_op> Starter::ask(Message& message, shm::RequestKind kind) {
  if (!neighbours_ || !neighbours_->may_send(message.envelope.peer)) {
    if (neighbours_) neighbours_->inbox().share_reads();
    return send(kind, message);
  }
  if (ring_.dead()) return refused();
  message.local = true;
  shm::Request request = request_of(kind, message);
  PARC_TRY(id, operations_.begin(kind, message));
  request.id = static_cast<std::uint64_t>(id);
  if (neighbours_->inbox().post(request, !message.blocking)) return id;
  operations_.abandon(id);
  return refused();
}

// An operation that has ended when it is known. PARC_OP_NULL: it cannot.
Result<parc_op> Starter::tell_at_once(const Message& message) {
  if (!neighbours_->knows(message.envelope.peer)) return PARC_OP_NULL;
  PARC_TRY(id, operations_.begin(shm::RequestKind::write, message));
  if (neighbours_->write_at_once(message)) {
    operations_.end(id,
                    {.source = message.envelope.peer, .tag = message.envelope.tag, .total = message.length});
    return id;
  }
  operations_.abandon(id);
  return PARC_OP_NULL;
}

// Of memory that the kernel has mapped it makes one copy, while this program goes on.
bool Starter::may_come_in_fragments(const Message& message) const {
  return message.length > shm::short_message && !guards_.any() && !neighbours_->pages_are_closed() &&
         !std::ranges::all_of(message.pieces, [this](const iovec& piece) { return in_arena(piece); });
}

// PARC_OP_NULL: it cannot come so. What was taken must be served: the memory by which the kernel may be asked
// is there before.
Result<parc_op> Starter::tell_in_fragments(const Message& message) {
  Message located = message;
  if (!neighbours_->is_awaited(message) || !make_place_for_long_write(located)) return PARC_OP_NULL;
  PARC_TRY(id, operations_.begin(shm::RequestKind::write, located));
  const auto taken = neighbours_->take_for_fragments(located);
  if (!taken) {
    operations_.abandon(id);
    return PARC_OP_NULL;
  }
  LocalMessage next = Neighbours::first_fragment(located, *taken);
  if (neighbours_->write_fragments(id, located, next)) return id;
  if (located.block != nullptr) hold_copy(id, located);
  return tell_taken(id, located, *taken);
}

bool Starter::make_place_for_long_write(Message& message) {
  if (may_name_own_memory_of_write(message)) {
    name_own_memory(message);
    return true;
  }
  auto block = late_reads_.allocate_for_write(message.length);
  if (block) name_block(message, block.value());
  return static_cast<bool>(block);
}

void Starter::hold_copy(parc_op id, const Message& message) {
  gather(static_cast<std::byte*>(message.block), message.pieces, 0, message.length);
  if (!may_be_let_go(message) || !room_.reserve(message.length)) return;
  operations_.entry(slot_of(id)).held = message.length;
  operations_.loosen(id);
}

// The kernel, of a read that is the message's.
Result<parc_op> Starter::tell_taken(parc_op id, const Message& message, const Outbox::Taken& taken) {
  shm::Request request = request_of(shm::RequestKind::write, message);
  request.id = static_cast<std::uint64_t>(id);
  request.with = shm::With::taken;
  request.write.read = taken.id;
  request.entry = taken.entry;
  if (ring_.push(request)) return id;
  operations_.abandon(id);
  return refused();
}

// A queued write's end is told when it ends: a copy ends it without the receiver. Nobody can hand over one
// that must be matched.
bool Starter::may_name_own_memory_of_write(const Message& message) const {
  return !message.is(MessageFlags::queued) && !message.is(MessageFlags::synchronous) &&
         may_name_own_memory(message);
}

// It may be published, if there is a body for it.
bool Starter::fits_a_body(const Message& message) {
  return message.length <= shm::huge_body && !message.is(MessageFlags::synchronous);
}

bool Starter::is_short(const Message& message) {
  return message.length <= shm::short_message && !message.is(MessageFlags::synchronous);
}

// A write to a neighbour. A long one, and one whose receiver computes, is given to a read that is posted
// there, if there is one; else it is published, with its bytes where they are few. One that must be matched
// before it ends is told as the long ones are. Causes go first: what releases are still to begin is waited
// for, as the blocking program would.
Result<parc_op> Starter::tell(Message& message) {
  if (guards_.any()) guards_.settle_begun();
  if (!puts_are_settled()) settle_puts(message.envelope.peer);
  if (ring_.dead()) return refused();
  const int peer = message.envelope.peer;
  const bool few = is_short(message);
  if (!few && may_come_in_fragments(message)) {
    PARC_TRY(id, tell_in_fragments(message));
    if (id != PARC_OP_NULL) return id;
  }
  const bool may_take = !few || neighbours_->may_take(peer);
  if (!few && may_name_own_memory_of_write(message)) {
    name_own_memory(message);
  } else if (may_take) {
    PARC_TRY(locate_write(message));
  }
  PARC_TRY(id, operations_.begin(shm::RequestKind::write, message));
  const auto taken = may_take ? neighbours_->take(peer, message.space, message.envelope.tag) : std::nullopt;
  if (taken) return tell_taken(id, message, *taken);
  const auto told = few ? neighbours_->write(id, message) : neighbours_->announce(id, message);
  if (!told) {
    operations_.abandon(id);
    return told.error();
  }
  if (few) return id;
  shm::Request request = request_of(shm::RequestKind::write, message);
  request.id = static_cast<std::uint64_t>(id);
  request.with = shm::With::rendezvous;
  if (ring_.push(request)) return id;
  operations_.abandon(id);
  return refused();
}

Result<parc_op> Starter::send(shm::RequestKind kind, const Message& message) {
  return send(request_of(kind, message), message);
}

Result<parc_op> Starter::send(shm::Request request, const Message& message) {
  PARC_TRY(id, operations_.begin(request.kind, message));
  request.id = static_cast<std::uint64_t>(id);
  const bool moves = request.kind != shm::RequestKind::read;
  if (ring_.push(request, moves ? shm::Sleep::deep : shm::Sleep::light)) return id;
  operations_.abandon(id);
  return refused();
}

} // namespace parc::client
