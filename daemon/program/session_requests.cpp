// SPDX-License-Identifier: BSD-3-Clause
// What each kind of request does: operations begin, and memory of the program comes and goes: the segments
// that it shares, the blocks of its tables, and what the kernel reaches through the system.
#include "daemon/program/session.hpp"
#include "include/parc/parc.h"

#include <cstring>
#include <spdlog/spdlog.h>
#include <utility>

namespace parc::daemon {

void Session::handle(const shm::Request& request) {
  if (state_ == State::leaving) return refuse(request);
  switch (request.kind) {
  case shm::RequestKind::read:
  case shm::RequestKind::write:
  case shm::RequestKind::probe: return start(request);
  case shm::RequestKind::address_of:
  case shm::RequestKind::add_peer:
  case shm::RequestKind::spawn:
  case shm::RequestKind::signal:
  case shm::RequestKind::exit_of: return ask_of_peers(request);
  case shm::RequestKind::cancel:
    if (spawned_programs_.cancel(request.id)) return;
    // What neighbours have matched is matched, whatever the kernel has seen of it.
    if (const Slot* slot = slots_.find(request.id);
        slot != nullptr && !NeighbourReads::is_matched(request.id, *slot))
      engine_.cancel(slot->handle);
    return;
  case shm::RequestKind::hand_over: return hand_over(request);
  case shm::RequestKind::place: return place(request);
  case shm::RequestKind::unplace: return unplace(request);
  case shm::RequestKind::map: return map(request);
  case shm::RequestKind::grow: return grow(request);
  case shm::RequestKind::unmap: return unmap(request);
  case shm::RequestKind::leave: return leave(request);
  case shm::RequestKind::release: return release(request);
  case shm::RequestKind::neighbour: return connect_neighbour(request);
  case shm::RequestKind::expose: return expose(request);
  case shm::RequestKind::unexpose: return unexpose(request);
  case shm::RequestKind::attach_window: return attach_window(request);
  case shm::RequestKind::leave_window: return leave_window(request);
  case shm::RequestKind::get: return get(request);
  case shm::RequestKind::put: return put(request);
  case shm::RequestKind::atomic: return atomic(request);
  case shm::RequestKind::bell:
    if (Session* const other = neighbour(request.peer)) other->completed();
    return;
  case shm::RequestKind::withdraw: return neighbour_reads_.withdraw(request.id);
  case shm::RequestKind::unread: return neighbour_reads_.leave_unread(request);
  case shm::RequestKind::abort:
    loop_.after_step(
        [&sessions = sessions_, member = member_, status = static_cast<int>(request.aborted.status & 0xff)] {
          sessions.events_.aborted(member, status);
        });
    return;
  case shm::RequestKind::none: break;
  }
  broke("it made a request of an unknown kind");
}

// libparc asks for nothing after it has left. A program that does all the same harms nothing that it wrote
// before, and does not wait for an answer for ever.
void Session::refuse(const shm::Request& request) {
  switch (request.kind) {
  case shm::RequestKind::read:
  case shm::RequestKind::write:
  case shm::RequestKind::probe:
  case shm::RequestKind::address_of:
  case shm::RequestKind::add_peer:
  case shm::RequestKind::spawn:
  case shm::RequestKind::signal:
  case shm::RequestKind::exit_of:
  case shm::RequestKind::map:
  case shm::RequestKind::unmap:
  case shm::RequestKind::grow:
  case shm::RequestKind::unplace:
  case shm::RequestKind::neighbour:
  case shm::RequestKind::expose:
  case shm::RequestKind::unexpose:
  case shm::RequestKind::attach_window:
  case shm::RequestKind::get:
  case shm::RequestKind::put:
  case shm::RequestKind::atomic:
  case shm::RequestKind::leave: {
    const std::uint64_t number = shm::slot_of(request.id);
    if (!knows(number) || slots_[number].busy) return;
    slots_[number].generation = shm::generation_of(request.id);
    return answer(number, PARC_ECANCELED);
  }
  case shm::RequestKind::place:
    if (slots_.find(request.id) != nullptr && slots_.find(request.id)->late)
      answer(shm::slot_of(request.id), PARC_ECANCELED);
    return;
  default: return;
  }
}

void Session::start(const shm::Request& request) {
  const bool writes = request.kind == shm::RequestKind::write;
  if (request.space != protocol::Space::programs && request.space != protocol::Space::barriers &&
      request.space != protocol::Space::untagged)
    return broke("it named a message of a space that it has not");
  if (request.with > shm::With::taken || (request.with == shm::With::taken && !writes) ||
      (request.with == shm::With::neighbours && writes) ||
      (request.with != shm::With::nobody && !neighbour_reads_.has_letterbox()))
    return broke("it shared an operation with neighbours that it has not");
  if (request.with == shm::With::neighbours && knows(shm::slot_of(request.id)) &&
      neighbour_reads_.is_known(request.id))
    return; // a neighbour, or the kernel, was faster than this request
  if (request.with == shm::With::rendezvous)
    neighbour_reads_.withdraw(request.id); // what was shared is now that message's
  Slot* slot = take_slot(request, writes ? shm::is_write : shm::is_read);
  if (slot == nullptr) return;
  slot->with = request.with;
  begin(request, *slot);
}

void Session::begin(const shm::Request& request, Slot& slot) {
  const bool writes = request.kind == shm::RequestKind::write;
  slot.queued = has(request.flags, protocol::MessageFlags::queued);
  const std::uint64_t number = shm::slot_of(request.id);
  protocol::Pieces memory;
  const bool peer_fits =
      (!writes && request.peer == PARC_ANY_SOURCE) || engine_.has_given(member_.endpoint, request.peer);
  const bool claims = has(request.flags, protocol::MessageFlags::claim),
             claimed = has(request.flags, protocol::MessageFlags::claimed);
  const auto claim = claimed ? claims_.find(request.read.claim) : claims_.end();
  if (claims && claims_.size() + claiming_ >= shm::most_reads) return refuse(slot, number, PARC_EAGAIN);
  const bool named = request.with == shm::With::rendezvous || request.with == shm::With::taken;
  const auto neighbour_of_ours = [&] { // or has been one
    const auto peer = engine_.address(member_.endpoint, request.peer);
    return !peer || peer->place == protocol::here;
  };
  const bool near_enough = !(writes && named && peer_fits) || neighbour_of_ours();
  const bool memory_fits = request.kind == shm::RequestKind::probe || resolve(request, memory, slot);
  if (!peer_fits || !near_enough || !memory_fits || (claimed && claim == claims_.end()) ||
      (writes && request.with == shm::With::taken && !give_taken(request))) {
    slot.used.reset();
    return refuse(slot, number, PARC_EINVAL);
  }
  hold_memory(slot.used);
  slot.total = request.length;
  sessions_.changed(*this);
  const std::uint64_t cookie = cookie_of(request.id, slot);
  const protocol::Space space = named ? protocol::Space::neighbours : request.space;
  if (writes) {
    ++writes_;
    if (request.with != shm::With::rendezvous) sent_.add(request.length);
    // Nobody else hears of what it writes to itself, but that waits behind its puts into its own window.
    const bool tells = request.peer != member_.rank || gate_.keeps_puts_to(member_.rank);
    const bool gated = gate_.shut() && tells && request.with != shm::With::taken; // its read waits
    slot.handle = engine_.write(member_.endpoint, {.cookie = cookie,
                                                   .destination = static_cast<std::uint32_t>(request.peer),
                                                   .tag = named ? request.id : request.write.tag,
                                                   .data = request.write.data,
                                                   .space = space,
                                                   .flags = request.flags,
                                                   .memory = std::move(memory),
                                                   .gated = gated});
    if (gated && slot.busy) gate_.keep(slot.handle);
    return;
  }
  ++reads_;
  slot.probes = request.kind == shm::RequestKind::probe;
  slot.late = request.pieces == shm::no_memory_yet;
  slot.claims = claims;
  claiming_ += claims;
  const std::uint64_t message = claimed ? claim->second : 0;
  if (claimed) claims_.erase(claim);
  slot.handle = engine_.read(member_.endpoint, {.cookie = cookie,
                                                .source = request.peer,
                                                .tag = request.read.tag,
                                                .ignore = request.read.ignore,
                                                .space = space,
                                                .flags = request.flags,
                                                .memory = std::move(memory),
                                                .probe = request.kind == shm::RequestKind::probe,
                                                .claimed = message,
                                                .owner_word = neighbour_reads_.owner_word(number, slot),
                                                .late = request.pieces == shm::no_memory_yet});
}

// What the engine is to call it.
std::uint64_t Session::cookie_of(std::uint64_t id, const Slot& slot) const {
  return Cookie::of_session(number_, shm::slot_of(id), slot.generation).word();
}

// It cannot be begun; a shared one only if nobody else has it.
void Session::refuse(Slot& slot, std::uint64_t number, std::int32_t error) {
  if (neighbour_reads_.owner_word(number, slot).take()) return answer(number, error);
  slot.busy = false;
}

void Session::hold_memory(const Extents::Used& used) {
  if (used.none()) return;
  extents_.hold(used);
  sessions_.memory_used();
}

Session::Slot* Session::take_slot(const shm::Request& request, bool (*of_its_kind)(std::uint64_t)) {
  const std::uint64_t number = shm::slot_of(request.id);
  if (knows(number)) neighbour_reads_.forget_older(request.id);
  Slot* slot = knows(number) && of_its_kind(number)
                   ? slots_.take(request.id, request.with == shm::With::rendezvous)
                   : nullptr;
  if (slot == nullptr) broke("it used an operation's place that is not free");
  return slot;
}

Session* Session::neighbour(std::int32_t row) const {
  const auto endpoint = neighbour_reads_.endpoint_in(row);
  Session* const session = endpoint ? sessions_.of_endpoint(*endpoint) : nullptr;
  return session != nullptr && session->attached() ? session : nullptr;
}

void Session::connect_neighbour(const shm::Request& request) {
  if (take_slot(request, shm::is_control) == nullptr) return;
  if (request.peer < 0) neighbour_reads_.refuse();
  const Session* const other = neighbour(request.peer);
  const NeighbourReads* const reads = other != nullptr ? &other->neighbour_reads_ : nullptr;
  complete(shm::control_slot, {.source = neighbour_reads_.queue_to(request.peer, reads)}, PARC_OK);
}

// The message of a writer that has taken a read of a neighbour's: that read is as if it were made now, for
// this message alone.
bool Session::give_taken(const shm::Request& write) {
  Session* const reader = neighbour(write.peer);
  if (reader == nullptr || !engine_.is_there(reader->member_.endpoint)) return true; // the write fails
  const std::int32_t row = engine_.add_row(reader->member_.endpoint, {protocol::here, member_.endpoint});
  const auto read = row >= 0 ? reader->neighbour_reads_.take(write, row) : std::nullopt;
  if (!read) return false;
  reader->begin(*read, *reader->slots_.find(read->id));
  return true;
}

// Requests about peers and processes are answered at once, or by the member that has one to do (conclude).
void Session::ask_of_peers(const shm::Request& request) {
  Slot* const slot = take_slot(request, shm::is_read);
  if (slot == nullptr) return;
  slot->queued =
      request.kind == shm::RequestKind::exit_of && has(request.flags, protocol::MessageFlags::queued);
  const bool spawns = request.kind == shm::RequestKind::spawn;
  protocol::Pieces memory; // used before anything else is done, so its segment need not be held
  if (spawns || request.kind == shm::RequestKind::address_of || request.kind == shm::RequestKind::add_peer) {
    Extents::Used used;
    if (request.pieces != 0 || request.length > (spawns ? SpawnedPrograms::most_text : shm::max_address) ||
        !extents_.resolve(request.address, request.length, memory, used))
      return answer(shm::slot_of(request.id), PARC_EINVAL);
  }
  std::optional<Completion> how;
  switch (request.kind) {
  case shm::RequestKind::address_of: how = added_peers_.name(request.peer, memory); break;
  case shm::RequestKind::add_peer: how = added_peers_.add(request.id, memory); break;
  case shm::RequestKind::spawn: how = spawned_programs_.spawn(request, memory, pid_); break;
  case shm::RequestKind::signal:
    how = spawned_programs_.signal(request.peer, request.signalled.number);
    break;
  default: how = spawned_programs_.await_exit(request.id, request.peer);
  }
  if (how) conclude(request.id, *how);
}

// What the program wrote is delivered from the segments, which stay here until then.
void Session::leave(const shm::Request& request) {
  if (take_slot(request, shm::is_control) == nullptr) return;
  state_ = State::leaving;
  loop_.after_step([&sessions = sessions_, member = member_] { sessions.events_.departs(member); });
  spawned_programs_.cancel_all();
  give_up_windows();
  engine_.leave(member_.endpoint);
  answer(shm::control_slot, PARC_OK);
}

// A read that has begun, or is over, holds nothing back; neither does one that the kernel does not know.
void Session::release(const shm::Request& request) {
  Slot* slot = slots_.find(request.id);
  if (slot == nullptr || slot->handle == 0 || slot->begun || slot->release != 0 ||
      !shm::is_read(shm::slot_of(request.id)))
    return;
  slot->release = gate_.release();
}

// Messages to and from neighbours need not be copied by the program then.
void Session::open_memory() {
  auto how = shm::CrossMemory::no_neighbours;
  if (neighbour_reads_.has_letterbox()) {
    how = shm::CrossMemory::off;
    if (sessions_.settings_.cross_memory) {
      copies_own_memory_ = find_memory();
      how = copies_own_memory_ ? shm::CrossMemory::reached : shm::CrossMemory::refused;
    }
  }
  control_->header.cross_memory.store(how, std::memory_order_relaxed);
}

// False: the system does not let this kernel reach it.
bool Session::find_memory() {
  if (memory_) return true;
  // It copies by itself from here on, and touches what there is of its memory, or dies of what there is not.
  const auto lost = [this](int error) {
    control_->header.cross_memory.store(shm::CrossMemory::lost, std::memory_order_relaxed);
    spdlog::info(
        "memory of rank {} of job {:x} (pid {}) cannot be reached: {}; it copies messages itself now",
        member_.rank, member_.job, pid_, std::strerror(error));
  };
  memory_.emplace(pid_, segment_.id(), *control_,
                  ProcessMemory::Events{.lost = lost, .asks = [this] { completed(); }});
  if (!memory_->probe()) memory_.reset();
  return memory_.has_value();
}

// As far as its ends tell.
bool Session::reaches(std::uint64_t address, std::uint64_t length) const {
  const auto is_there = [this](std::uint64_t at) {
    std::byte one{};
    return memory_->take(&one, reinterpret_cast<const std::byte*>(static_cast<std::uintptr_t>(at)), 1) == 0;
  };
  return length == 0 || (is_there(address) && is_there(address + length - 1));
}

bool Session::has_copied() const {
  return memory_ && memory_->is_answered();
}

// Where the bytes of a message are, or go.
bool Session::resolve(const shm::Request& request, protocol::Pieces& memory, Slot& slot) {
  if (request.length > shm::max_message) return false;
  if (request.pieces == shm::no_memory_yet)
    return request.kind == shm::RequestKind::read && !has(request.flags, protocol::MessageFlags::claimed);
  if (request.pieces == 0) return extents_.resolve(request.address, request.length, memory, slot.used);
  if (request.pieces != shm::in_own_memory)
    return extents_.resolve_list(request.address, request.pieces, request.length, memory, slot.used);
  if (!copies_own_memory_ || (request.with != shm::With::rendezvous && request.with != shm::With::taken))
    return false;
  memory.append({reinterpret_cast<std::byte*>(static_cast<std::uintptr_t>(request.address)), request.length,
                 &*memory_});
  return true;
}

void Session::map(const shm::Request& request) {
  if (take_slot(request, shm::is_control) == nullptr) return;
  const Result<void> mapped =
      extents_.map(request.address, request.length, static_cast<int>(request.attached.segment));
  if (!mapped) spdlog::warn("rank {} of job {:x}: {}", member_.rank, member_.job, mapped.error().text);
  answer(shm::control_slot, mapped ? PARC_OK : PARC_ENOMEM);
}

void Session::unmap(const shm::Request& request) {
  if (take_slot(request, shm::is_control) == nullptr) return;
  if (!extents_.unmap(request.address)) return answer(shm::control_slot, PARC_EINVAL);
  windows_.memory_went();
  if (!extents_.mapped(request.address) || has(request.flags, protocol::MessageFlags::no_wait))
    return answer(shm::control_slot, PARC_OK);
  unmap_address_ = request.address; // answered when its last use ends
}

// The block's slots are used when this has been answered.
void Session::grow(const shm::Request& request) {
  if (take_slot(request, shm::is_control) == nullptr) return;
  const unsigned number = tables_->blocks() + 1;
  if (request.attached.block != number || number > shm::most_blocks ||
      request.length != shm::bytes_of_block(number))
    return answer(shm::control_slot, PARC_EINVAL);
  Result<shm::Segment> block =
      shm::Segment::attach(static_cast<int>(request.attached.segment), request.length);
  if (!block) {
    spdlog::warn("rank {} of job {:x}: {}", member_.rank, member_.job, block.error().text);
    return answer(shm::control_slot, PARC_ENOMEM);
  }
  slots_.grow(number);
  tables_->add(blocks_.emplace_back(std::move(block).value()).data());
  answer(shm::control_slot, PARC_OK);
}

void Session::expose(const shm::Request& request) {
  if (take_slot(request, shm::is_control) == nullptr) return;
  protocol::CrossMemory* own = nullptr;
  if (request.pieces == shm::in_own_memory) {
    if (!sessions_.settings_.may_reach || !find_memory() || !reaches(request.address, request.length))
      return answer(shm::control_slot, PARC_ENOMEM);
    own = window_memory_ ? &*window_memory_ : &window_memory_.emplace(*memory_);
  }
  answer(shm::control_slot, windows_.expose(request, own));
}

// It may last as long as a link that has broken, while the program goes on: the control slot is for others.
void Session::unexpose(const shm::Request& request) {
  if (take_slot(request, shm::is_read) == nullptr) return;
  bool over = false;
  const bool found = windows_.unexpose(request.exposed.window, request.id, over);
  if (!found || over) answer(shm::slot_of(request.id), found ? PARC_OK : PARC_EINVAL);
}

// Of a rank of the same job: what strangers may do the engine says, request by request.
void Session::attach_window(const shm::Request& request) {
  if (take_slot(request, shm::is_control) == nullptr) return;
  const std::uint32_t entry = request.entry;
  if (!AttachedWindows::has(entry) || !attached_windows_.is_free(entry))
    return broke("it wants a window where it has one");
  Session* const other = neighbour(request.peer);
  const bool fellow = other != nullptr && other->member_.job == member_.job && !other->left();
  const auto window = fellow ? other->windows_.attach(request.place.window, {number_, entry}) : std::nullopt;
  if (window) attached_windows_.open(entry, control_->windows[entry], other->number_, *window);
  complete(shm::control_slot, {.source = window ? 0 : -1}, PARC_OK);
}

void Session::leave_window(const shm::Request& request) {
  if (!AttachedWindows::has(request.entry)) return broke("it left a window that there cannot be");
  const auto of = attached_windows_.leave(request.entry, control_->windows[request.entry]);
  if (!of) return;
  control_->windows_freed.fetch_add(1, std::memory_order_relaxed);
  sessions_.sessions_[of->session]->detach_window(of->window, {number_, request.entry});
}

// Its slot, and what its memory is; none: it has been answered.
Session::Slot* Session::take_one_sided(const shm::Request& request, protocol::Pieces& memory) {
  if (request.with != shm::With::nobody) {
    broke("it shared a one-sided transfer with neighbours");
    return nullptr;
  }
  const bool puts = request.kind == shm::RequestKind::put, atomic = request.kind == shm::RequestKind::atomic;
  if (!atomic && request.entry != 0 && (request.length == 0 || request.length % request.entry != 0)) {
    broke("it shared out a transfer in rows that are not of one length");
    return nullptr;
  }
  Slot* const slot = take_slot(request, puts ? shm::is_write : shm::is_read);
  if (slot == nullptr) return nullptr;
  slot->queued = has(request.flags, protocol::MessageFlags::queued);
  if (!engine_.has_given(member_.endpoint, request.peer) || (!atomic && !resolve(request, memory, *slot))) {
    slot->used.reset();
    answer(shm::slot_of(request.id), PARC_EINVAL);
    return nullptr;
  }
  hold_memory(slot->used);
  slot->total = request.length;
  ++(puts ? writes_ : reads_);
  sessions_.changed(*this);
  return slot;
}

// Of a request for a get or put; none: its bytes lie together.
std::optional<protocol::Rows> Session::rows_of(const shm::Request& request) {
  if (request.entry == 0) return {};
  return protocol::Rows{request.length / request.entry, request.place.stride};
}

// It tells nobody anything, but would not see a put that the gate keeps.
void Session::get(const shm::Request& request) {
  protocol::Pieces memory;
  Slot* const slot = take_one_sided(request, memory);
  if (slot == nullptr) return;
  slot->probes = true;
  const bool gated = gate_.keeps_puts_to(request.peer);
  slot->handle = engine_.get(member_.endpoint, {.cookie = cookie_of(request.id, *slot),
                                                .target = static_cast<std::uint32_t>(request.peer),
                                                .window = request.place.window,
                                                .offset = request.place.offset,
                                                .flags = request.flags,
                                                .memory = std::move(memory),
                                                .rows = rows_of(request),
                                                .gated = gated});
  if (gated && slot->busy) gate_.keep(slot->handle);
}

void Session::put(const shm::Request& request) {
  protocol::Pieces memory;
  Slot* const slot = take_one_sided(request, memory);
  if (slot == nullptr) return;
  const bool gated = gate_.shut(); // others see its own window, too
  slot->handle = engine_.write(member_.endpoint, {.cookie = cookie_of(request.id, *slot),
                                                  .destination = static_cast<std::uint32_t>(request.peer),
                                                  .tag = request.place.window,
                                                  .data = request.place.offset,
                                                  .flags = request.flags,
                                                  .memory = std::move(memory),
                                                  .gated = gated,
                                                  .put = true,
                                                  .rows = rows_of(request)});
  if (gated && slot->busy) gate_.keep(slot->handle, request.peer);
}

// It tells of what the program has done, as a put does.
void Session::atomic(const shm::Request& request) {
  const protocol::Atomic atomic{.operand = request.atomic.operand,
                                .compare = request.address,
                                .what = static_cast<protocol::Atomic::What>(request.entry & 0xff),
                                .width = static_cast<std::uint8_t>(request.entry >> 8),
                                .reserved = 0,
                                .reserved_too = 0};
  if (!is_good(atomic)) return broke("it asked for an atomic operation that there is not");
  protocol::Pieces memory;
  Slot* const slot = take_one_sided(request, memory);
  if (slot == nullptr) return;
  slot->probes = true;
  const bool gated = gate_.shut();
  slot->handle = engine_.get(member_.endpoint, {.cookie = cookie_of(request.id, *slot),
                                                .target = static_cast<std::uint32_t>(request.peer),
                                                .window = request.atomic.window,
                                                .offset = request.atomic.offset,
                                                .flags = protocol::MessageFlags::none,
                                                .memory = {},
                                                .atomic = atomic,
                                                .gated = gated});
  if (gated && slot->busy) gate_.keep(slot->handle, request.peer);
}

void Session::hand_over(const shm::Request& request) {
  Slot* slot = slots_.find(request.id);
  if (slot == nullptr) return; // it finished meanwhile, which the program sees as well
  if (!shm::is_write(shm::slot_of(request.id))) return broke("it handed over what is no write");
  const bool low_part = has(request.flags, protocol::MessageFlags::from_end);
  const std::uint64_t border = request.handed.border;
  if (std::exchange(slot->handed_over, true)) return broke("it handed over a write twice");
  if (border > slot->total || request.length != (low_part ? border : slot->total - border))
    return broke("it handed over another range than it said");
  protocol::Pieces memory;
  Extents::Used used;
  if (!extents_.resolve(request.address, request.length, memory, used))
    return broke("it handed over memory that it does not share");
  std::uint64_t at = low_part ? 0 : border;
  memory.each(0, memory.size(), [&](std::byte* base, std::uint64_t length) {
    engine_.hand_over(slot->handle, at, base, length);
    at += length;
  });
  hold_memory(used & ~slot->used);
  slot->used |= used;
  operation(shm::slot_of(request.id)).handed_or_data.store(slot->generation, std::memory_order_release);
  completed();
}

// The engine's read is over: it has claimed its message for the one that place() makes.
void Session::await_memory(std::uint64_t number, const protocol::Outcome& outcome) {
  Slot& slot = slots_[number];
  claims_.emplace(shm::id_of(slot.generation, number), outcome.claim);
  begun(Cookie::of_session(number_, number, slot.generation), outcome);
  completed();
}

void Session::place(const shm::Request& request) {
  Slot* slot = slots_.find(request.id);
  const auto claim = claims_.find(request.id);
  if (slot == nullptr || !slot->late || claim == claims_.end() || request.pieces != 0)
    return broke("it gave memory to a read that waits for none");
  protocol::Pieces memory;
  if (!resolve(request, memory, *slot)) return broke("it gave a read memory that it does not share");
  hold_memory(slot->used);
  slot->late = false;
  const std::uint64_t message = claim->second;
  claims_.erase(claim);
  ++reads_;
  sessions_.changed(*this);
  slot->handle = engine_.read(member_.endpoint, {.cookie = cookie_of(request.id, *slot),
                                                 .flags = request.flags,
                                                 .memory = std::move(memory),
                                                 .claimed = message});
}

// A neighbour may have taken it already: its write, which is yet to come, finds it without memory.
void Session::unplace(const shm::Request& request) {
  if (take_slot(request, shm::is_control) == nullptr) return;
  const std::uint64_t read = request.unplaced.read, number = shm::slot_of(read);
  if (!shm::is_read(number) || !knows(number)) return broke("it wanted memory back of what is no read");
  Slot* const slot = slots_.find(read);
  const bool published = request.with == shm::With::taken,
             shared = slot != nullptr && slot->with == shm::With::neighbours;
  bool possible = false;
  if (published && !shared) {
    possible = !neighbour_reads_.is_known(read);
  } else if (shared && slot->late) {
    possible = true; // it was begun without
  } else if (slot != nullptr && (shared || slot->with == request.with) &&
             !NeighbourReads::is_matched(read, *slot) && engine_.unplace(slot->handle)) {
    extents_.drop(slot->used);
    slot->used.reset();
    possible = slot->late = true;
  }
  if (possible) slots_[number].unplaced = shm::generation_of(read);
  answer(shm::control_slot, possible ? PARC_OK : PARC_EINVAL);
}

} // namespace parc::daemon
