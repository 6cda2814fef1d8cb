// SPDX-License-Identifier: BSD-3-Clause
// Messages that wait for cells, each behind those of its pair.
#include "client/local/outbox.hpp"

#include "client/base/pieces.hpp"
#include "parc/parc.h"
#include "system/coarse_clock.hpp"

namespace parc::client {

// Who sleeps has not asked for cells: that is done here, and what was drained before is seen by who flushes
// next, which the caller does.
Outbox::Sent Outbox::wait(Receiver& receiver, const LocalMessage& message, parc_op write) {
  Waiting* const waits = hold(message, write);
  if (waits == nullptr) return Sent::no_memory;
  const Sent how = waits->write == 0 ? Sent::held : Sent::waits;
  if (!std::exchange(receiver.backlogged, true)) {
    backlogged_.push_back(&receiver);
    waiting_pairs_.store(backlogged_.size(), std::memory_order_relaxed);
  }
  if (receiver.waiting.empty()) receiver.since = coarse_ms();
  receiver.waiting.push_back(*waits);
  const std::uint64_t cost = MessagesIn<Waiting>::cost(*waits);
  receiver.backlog += cost;
  standing_.waits_for_cell(cost);
  if (asleep_ && own_.owner.wants_cells.load(std::memory_order_relaxed) == 0) {
    own_.owner.wants_cells.store(1, std::memory_order_relaxed);
    areas_.barrier();
  }
  return how;
}

// A copy, where one may be held; else the write keeps its bytes.
Waiting* Outbox::hold(const LocalMessage& message, parc_op write) {
  const bool whole = message.kind == shm::CellKind::whole;
  const bool fits = message.length <= shm::cell_bytes;
  bool copied = whole && room_.reserve(message.length);
  Waiting* waits = memory_.make(copied && !fits ? message.length : 0);
  if (waits == nullptr && copied) {
    room_.free(message.length);
    copied = false;
    waits = memory_.make(0);
  }
  if (waits == nullptr) return nullptr;
  describe(waits->cell, message);
  if (fits)
    gather(waits->cell.bytes, message.pieces, 0, message.length);
  else if (copied)
    gather(waits->body, message.pieces, 0, message.length);
  waits->held = copied ? message.length : 0;
  waits->write = copied ? 0 : write;
  return waits;
}

// `piece` holds what its bytes are named by.
LocalMessage Outbox::message_of(const Waiting& waits, iovec& piece) {
  const shm::Cell& cell = waits.cell;
  LocalMessage message{.tag = cell.tag,
                       .data = cell.data,
                       .flags = cell.flags,
                       .space = cell.space,
                       .kind = cell.kind,
                       .pieces = {&piece, 1},
                       .length = cell.length};
  piece.iov_len = cell.length;
  if (cell.length <= shm::cell_bytes) {
    piece.iov_base = const_cast<std::byte*>(cell.bytes);
  } else if (waits.body != nullptr) {
    piece.iov_base = waits.body;
  } else {
    const Operations::Entry& entry = operations_.entry(slot_of(waits.write));
    piece.iov_base = entry.block;
    if (entry.block == nullptr) message.pieces = entry.pieces;
  }
  return message;
}

void Outbox::drop(Receiver& receiver, Waiting& waits) {
  const std::uint64_t cost = MessagesIn<Waiting>::cost(waits);
  receiver.backlog -= cost;
  standing_.waits_no_more(cost);
  room_.free(waits.held);
  memory_.drop(waits);
}

// What waits for one that has departed is nobody's; a rendezvous ends with the kernel's write.
Outbox::Went Outbox::go_on(Receiver& receiver) {
  Went went;
  const std::uint32_t departed = own_.kernel.to[receiver.queue].departed.load(std::memory_order_acquire);
  while (!receiver.waiting.empty() && (departed != 0 || has_cell(receiver))) {
    Waiting& waits = receiver.waiting.front();
    iovec piece{};
    if (departed == 0) went.rings = publish(receiver, message_of(waits, piece)) || went.rings;
    if (waits.write != 0 && waits.cell.kind == shm::CellKind::whole) {
      operations_.end(waits.write, {.error = departed != 0 ? PARC_EPEER : PARC_OK,
                                    .source = receiver.row,
                                    .tag = waits.cell.tag,
                                    .total = waits.cell.length,
                                    .departure = departed,
                                    .late = true});
      went.ended = true;
    }
    drop(receiver, waits);
    went.some = true;
  }
  return went;
}

// Of the pair at `next` among those that wait, which becomes the one behind it.
Outbox::Went Outbox::flush_next(std::size_t& next, int& row) {
  Receiver& receiver = *backlogged_[next];
  row = receiver.row;
  Went went = go_on(receiver);
  if (!receiver.waiting.empty()) {
    ++next;
    if (went.some)
      receiver.since = coarse_ms();
    else if (standing_.is_long(receiver.since))
      went.standing = receiver.waiting.size(), went.bytes = receiver.backlog;
  } else {
    receiver.backlogged = false;
    backlogged_[next] = backlogged_.back();
    backlogged_.pop_back();
    waiting_pairs_.store(backlogged_.size(), std::memory_order_relaxed);
  }
  return went;
}

bool Outbox::flush() {
  if (!anything_waits() || Ring::pushing() || inside_) return false;
  bool ended = false;
  for (std::size_t next = 0;;) {
    int row = 0;
    Went went;
    {
      const Hold hold(*this, std::try_to_lock);
      if (!hold || next >= backlogged_.size()) return ended;
      went = flush_next(next, row);
    }
    ended = ended || went.ended;
    if (went.rings) ring(row);
    if (went.standing != 0) standing_.say_waiting(row, went.standing, went.bytes);
  }
}

std::uint64_t Outbox::backlog(int row) {
  const Hold hold(*this);
  return receiver_at(row).backlog;
}

bool Outbox::has_cell(int row) {
  const Hold hold(*this);
  Receiver& receiver = receiver_at(row);
  return receiver.waiting.empty() && (has_departed(receiver) || has_cell(receiver));
}

bool Outbox::cancel(int row, parc_op write) {
  if (!anything_waits()) return false;
  const Hold hold(*this);
  const std::int32_t at = number_of(row);
  if (at < 0) return false;
  Receiver& receiver = *receivers_[static_cast<std::size_t>(at)];
  for (Waiting& waits : receiver.waiting) {
    if (waits.write != write) continue;
    const bool whole = waits.cell.kind == shm::CellKind::whole;
    if (whole) operations_.end(write, {.error = PARC_ECANCELED, .late = true});
    drop(receiver, waits);
    return whole;
  }
  return false;
}

bool Outbox::forget(parc_op write) {
  if (!anything_waits()) return true;
  if (inside_) return false;
  const Hold hold(*this, std::try_to_lock);
  if (!hold) return false;
  for (Receiver* const receiver : backlogged_)
    for (Waiting& waits : receiver->waiting)
      if (waits.write == write) {
        drop(*receiver, waits);
        return true;
      }
  return true;
}

// A receiver stores what it has drained, makes the fence (or has it made, by the sleeper's barrier), and
// looks whether cells are wanted; this says so, makes the barrier, and looks what was drained: one of them
// sees.
void Outbox::announce_sleep() {
  const Hold hold(*this);
  asleep_ = true;
  own_.owner.wants_cells.store(anything_waits() ? 1 : 0, std::memory_order_relaxed);
}

void Outbox::announce_awake() {
  const Hold hold(*this);
  asleep_ = false;
  own_.owner.wants_cells.store(0, std::memory_order_relaxed);
}

bool Outbox::may_go_on() {
  if (!anything_waits()) return false;
  const Hold hold(*this);
  for (Receiver* const receiver : backlogged_)
    if (receiver->waiting.empty() || has_departed(*receiver) || has_cell(*receiver)) return true;
  return false;
}

} // namespace parc::client
