// SPDX-License-Identifier: BSD-3-Clause
// What a session does with its program's memory: the segments that the program shares, the blocks of its
// tables, and what the kernel reaches through the system.
#include "daemon/program/session.hpp"
#include "include/parc/parc.h"

#include <cstring>
#include <spdlog/spdlog.h>

namespace parc::daemon {

// Messages to and from neighbours need not be copied by the program then.
void Session::open_memory() {
  auto how = shm::CrossMemory::no_neighbours;
  if (letterbox_.memory != nullptr) {
    how = shm::CrossMemory::off;
    if (sessions_.told_.cross_memory) {
      memory_.emplace(pid_, segment_.id(), *control_,
                      ProcessMemory::Hooks{.lost = [this](int error) { lose_memory(error); },
                                           .asks = [this] { completed(); }});
      how = memory_->probe() ? shm::CrossMemory::reached : shm::CrossMemory::refused;
      if (how == shm::CrossMemory::refused) memory_.reset();
    }
  }
  control_->header.cross_memory.store(how, std::memory_order_relaxed);
}

// It copies by itself from here on, and touches what there is of its memory, or dies of what there is not.
void Session::lose_memory(int error) {
  control_->header.cross_memory.store(shm::CrossMemory::lost, std::memory_order_relaxed);
  spdlog::info("memory of rank {} of job {:x} (pid {}) cannot be reached: {}; it copies messages itself now",
               place_.rank, place_.job, pid_, std::strerror(error));
}

bool Session::has_copied() const {
  return memory_ && memory_->is_answered();
}

// Where the bytes of a message are, or go.
bool Session::resolve(const shm::Request& request, protocol::Pieces& memory, Slot& slot) {
  if (request.length > shm::max_message) return false;
  if (request.pieces == shm::no_memory_yet)
    return request.kind == shm::RequestKind::read && (request.flags & shm::flag_claimed) == 0;
  if (request.pieces == 0) return extents_.resolve(request.address, request.length, memory, slot.used);
  if (request.pieces != shm::in_own_memory)
    return extents_.resolve_list(request.address, request.pieces, request.length, memory, slot.used);
  if (!memory_ || (request.with != shm::With::rendezvous && request.with != shm::With::taken)) return false;
  memory.append({reinterpret_cast<std::byte*>(static_cast<std::uintptr_t>(request.address)), request.length,
                 &*memory_});
  return true;
}

void Session::map(const shm::Request& request) {
  if (take_slot(request, shm::is_control) == nullptr) return;
  const Result<void> mapped = extents_.map(request.address, request.length, static_cast<int>(request.extra));
  if (!mapped) spdlog::warn("rank {} of job {:x}: {}", place_.rank, place_.job, mapped.error().text);
  answer(shm::control_slot, mapped ? PARC_OK : PARC_ENOMEM);
}

void Session::unmap(const shm::Request& request) {
  if (take_slot(request, shm::is_control) == nullptr) return;
  if (!extents_.unmap(request.address)) return answer(shm::control_slot, PARC_EINVAL);
  if (!extents_.mapped(request.address) || (request.flags & shm::flag_no_wait) != 0)
    return answer(shm::control_slot, PARC_OK);
  unmap_address_ = request.address; // answered when its last use ends
}

// The block's slots are used when this has been answered.
void Session::grow(const shm::Request& request) {
  if (take_slot(request, shm::is_control) == nullptr) return;
  const unsigned number = tables_->blocks() + 1;
  if (request.tag != number || number > shm::most_blocks || request.length != shm::bytes_of_block(number))
    return answer(shm::control_slot, PARC_EINVAL);
  Result<shm::Segment> block = shm::Segment::attach(static_cast<int>(request.extra), request.length);
  if (!block) {
    spdlog::warn("rank {} of job {:x}: {}", place_.rank, place_.job, block.error().text);
    return answer(shm::control_slot, PARC_ENOMEM);
  }
  slots_.grow(number);
  tables_->add(blocks_.emplace_back(std::move(block).value()).data());
  answer(shm::control_slot, PARC_OK);
}

void Session::hand_over(const shm::Request& request) {
  Slot* slot = slots_.find(request.id);
  if (slot == nullptr) return; // it finished meanwhile, which the program sees as well
  if (!shm::is_write(shm::slot_of(request.id))) return broke("it handed over what is no write");
  const bool low_part = (request.flags & shm::flag_from_end) != 0;
  if (std::exchange(slot->handed_over, true)) return broke("it handed over a write twice");
  if (request.extra > slot->total ||
      request.length != (low_part ? request.extra : slot->total - request.extra))
    return broke("it handed over another range than it said");
  protocol::Pieces memory;
  Extents::Used used;
  if (!extents_.resolve(request.address, request.length, memory, used))
    return broke("it handed over memory that it does not share");
  std::uint64_t at = low_part ? 0 : request.extra;
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
  slot->handle =
      engine_.read(place_.endpoint,
                   {.cookie = Cookie::of_session(number_, shm::slot_of(request.id), slot->generation).word(),
                    .memory = std::move(memory),
                    .from_end = (request.flags & shm::flag_from_end) != 0,
                    .claimed = message});
}

// A neighbour may have taken it already: its write, which is yet to come, finds it without memory.
void Session::unplace(const shm::Request& request) {
  if (take_slot(request, shm::is_control) == nullptr) return;
  const std::uint64_t read = request.extra, number = shm::slot_of(read);
  if (!shm::is_read(number) || !knows(number)) return broke("it wanted memory back of what is no read");
  const bool of_neighbours = request.with == shm::With::taken;
  const bool possible = of_neighbours ? !is_taken(read) : unplace(read, request.with);
  if (possible) slots_[number].unplaced = shm::generation_of(read);
  answer(shm::control_slot, possible ? PARC_OK : PARC_EINVAL);
}

bool Session::unplace(std::uint64_t read, shm::With with) {
  Slot* const slot = slots_.find(read);
  if (slot == nullptr || slot->with != with || is_matched(read, *slot) || !engine_.unplace(slot->handle))
    return false;
  extents_.drop(slot->used);
  slot->used.reset();
  slot->late = true;
  return true;
}

} // namespace parc::daemon
