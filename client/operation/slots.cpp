// SPDX-License-Identifier: BSD-3-Clause
// Operations, the other half: free slots, and how finished operations become free slots again.
#include "client/operation/operations.hpp"

namespace parc::client {
namespace {

// A start can let go of one write; looking at more than one keeps the list short.
constexpr std::size_t reaped_per_start = 4;

} // namespace

Result<Slot> Operations::take_slot(bool writes) {
  for (;;) {
    const unsigned blocks = tables().blocks();
    {
      const std::lock_guard hold(lock_);
      collect_locked();
      if (const auto slot = table_.take(writes)) return *slot;
      reap(to_reap_.size());
      if (const auto slot = table_.take(writes)) return *slot;
    }
    PARC_TRY(table_.grow(blocks));
  }
}

void Operations::give_up(const Message& message) {
  arena_.free(message.block);
  arena_.free(message.list);
  adopted_.end_use(message.adopted);
  room_.free(message.held);
}

void Operations::collect() {
  const std::lock_guard hold(lock_);
  collect_locked();
  reap(to_reap_.size());
}

std::uint64_t Operations::taken_from(Slot writing) {
  const auto taken_of = [this](Slot slot) {
    const shm::Operation& shared = tables().operation(slot);
    return std::min(table_[slot].length, shared.front.load(std::memory_order_relaxed) +
                                             shared.back.load(std::memory_order_relaxed));
  };
  const int peer = table_[writing].envelope.peer;
  const std::lock_guard hold(lock_);
  Taken& known = taken_of_rank(peer);
  if (const auto now = Clock::now(); now - known.summed >= sum_every) { // they may be a million
    known.summed = now;
    collect_locked();
    reap(to_reap_.size());
    known.of_copies = 0;
    for (const Slot slot : to_reap_)
      if (&taken_of_rank(table_[slot].envelope.peer) == &known) known.of_copies += taken_of(slot);
  }
  return known.of_gone + known.of_copies + taken_of(writing);
}

// Whoever frees the slots has the lock.
void Operations::collect_blocks() {
  const std::unique_lock hold(lock_, std::try_to_lock);
  if (!hold) return;
  each_slot([this](Slot slot) {
    Entry& entry = table_[slot];
    const Use use = use_of(entry.tag.load(std::memory_order_acquire));
    const bool over = use == Use::spent || (use == Use::detached && done(slot));
    if (over && entry.bounced.load(std::memory_order_relaxed) != 0 &&
        arena_.free_without_waiting(entry.block))
      (void)entry.take_block();
  });
}

Result<void*> Operations::allocate(std::size_t bytes) {
  if (void* block = arena_.allocate_from_what_is_there(bytes)) return block;
  collect();
  return arena_.allocate(bytes);
}

void Operations::collect_locked() {
  for (Slot slot = spent_.take_all(); slot != Stack::none;) {
    const Slot next = table_[slot].next;
    free_slot(slot);
    slot = next;
  }
  for (Slot slot = detached_.take_all(); slot != Stack::none; slot = table_[slot].next)
    to_reap_.push_back(slot);
  reap(reaped_per_start);
}

// Looks at some of the writes that were let go, in turns, and frees those that the kernel is done with.
void Operations::reap(std::size_t at_most) {
  for (std::size_t looked = std::min(at_most, to_reap_.size()); looked > 0; --looked) {
    if (next_to_reap_ >= to_reap_.size()) next_to_reap_ = 0;
    const Slot slot = to_reap_[next_to_reap_];
    if (!done(slot)) {
      ++next_to_reap_;
      continue;
    }
    note_end(slot);
    to_reap_[next_to_reap_] = to_reap_.back();
    to_reap_.pop_back();
    free_slot(slot);
  }
}

// Of one that nobody waits for.
void Operations::note_end(Slot slot) {
  const Entry& entry = table_[slot];
  const shm::Operation& shared = tables().operation(slot);
  const int error = shared.error.load(std::memory_order_relaxed);
  note_peer(entry.envelope.peer, error);
  const bool lost = error != PARC_OK && error != PARC_ECANCELED && entry.kind == shm::RequestKind::put;
  if (!lost || lost_put_) return;
  lost_put_ = {entry.envelope, entry.length, error, shared.departure_or_data.load(std::memory_order_relaxed)};
}

std::optional<Operations::LostPut> Operations::take_lost_put() {
  const std::lock_guard hold(lock_);
  collect_locked();
  reap(to_reap_.size());
  return std::exchange(lost_put_, std::nullopt);
}

void Operations::free_slot(Slot slot) {
  Entry& entry = table_[slot];
  if (trace_.on() && entry.has_message()) trace_message(slot);
  set_late(slot, false);
  if (std::exchange(entry.pinned, false))
    for (const iovec& piece : entry.pieces) arena_.unpin(piece.iov_base);
  arena_.free(entry.take_block());
  arena_.free(std::exchange(entry.list, nullptr));
  if (entry.adopted) adopted_.end_use(*std::exchange(entry.adopted, nullptr));
  if (shm::is_write(slot) && entry.held != 0) taken_of_rank(entry.envelope.peer).of_gone += entry.length;
  room_.free(std::exchange(entry.held, 0));
  set_use(slot, Use::free);
  table_.give(slot);
}

void Operations::trace_message(Slot slot, std::uint16_t flags) const {
  const Entry& entry = table_[slot];
  const shm::Operation& shared = tables().operation(slot);
  const shm::Times& times = tables().times(slot);
  const bool writes = shm::is_write(slot), over = done(slot);
  trace::Record message{};
  message.kind = trace::Kind::message;
  message.flags = static_cast<std::uint16_t>(
      flags | (writes ? trace::flag_write : 0) | (entry.block && !entry.pinned ? trace::flag_bounced : 0) |
      (entry.adopted ? trace::flag_adopted : 0) |
      (shm::is_one_sided(entry.kind) ? trace::flag_one_sided : 0) |
      (entry.kind == shm::RequestKind::atomic ? trace::flag_atomic : 0));
  message.thread = entry.thread;
  message.begin = entry.posted;
  message.first = times.begun.load(std::memory_order_relaxed);
  message.end = over ? times.done.load(std::memory_order_relaxed) : 0;
  message.released = entry.released;
  message.id = static_cast<std::uint64_t>(id_in(slot));
  message.site = entry.site;
  message.address = entry.pieces.empty() ? 0 : reinterpret_cast<std::uintptr_t>(entry.pieces[0].iov_base);
  // What a read was given, where it was given something.
  const bool known = !writes && over && shared.error.load(std::memory_order_relaxed) != PARC_ECANCELED;
  const bool told = known && entry.kind != shm::RequestKind::atomic; // which has no bytes on its way
  message.bytes = told ? shared.total.load(std::memory_order_relaxed) : entry.length;
  message.peer = known ? shared.source.load(std::memory_order_relaxed) : entry.envelope.peer;
  const std::uint64_t tag =
      known ? shared.tag.load(std::memory_order_relaxed) : entry.envelope.tag | entry.envelope.ignore;
  message.tag = shm::tag_in(tag);
  message.context = shm::context_in(tag);
  message.error = over ? shared.error.load(std::memory_order_relaxed) : PARC_OK;
  trace_.add(message);
}

void Operations::trace_rest() {
  const std::lock_guard hold(lock_);
  collect_locked();
  reap(to_reap_.size());
  each_slot([this](Slot slot) {
    const bool used = use_of(table_[slot].tag.load(std::memory_order_acquire)) != Use::free;
    if (used && table_[slot].has_message()) trace_message(slot);
  });
}

void Operations::trace_under_way() {
  {
    const std::lock_guard hold(lock_); // nothing is freed meanwhile
    each_slot([this](Slot slot) {
      const Use use = use_of(table_[slot].tag.load(std::memory_order_acquire));
      const bool held = use == Use::live || use == Use::held || use == Use::taken;
      if (held && !done(slot) && table_[slot].has_message()) trace_message(slot, trace::flag_under_way);
    });
  }
  trace_.flush();
}

} // namespace parc::client
