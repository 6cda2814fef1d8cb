// SPDX-License-Identifier: BSD-3-Clause
// What a session does for messages that its program exchanges with neighbours: it makes their way, wakes who
// sleeps, and shares reads that a neighbour's message may answer as well as one from another host.
#include "daemon/program/session.hpp"
#include "include/parc/parc.h"

namespace parc::daemon {

void Session::open_letterbox(bool wanted) {
  Letterboxes& all = sessions_.letterboxes_;
  const Letterboxes::Box* const box =
      wanted ? all.open(place_.endpoint) : all.find(place_.endpoint); // somebody may have written already
  if (box == nullptr) return;
  letterbox_ = *box;
  wants_neighbours_ = wanted;
}

void Session::connect_neighbour(const shm::Request& request) {
  if (take_slot(request, shm::is_control) == nullptr) return;
  if (request.peer < 0) wants_neighbours_ = false;
  complete(shm::control_slot, {.source = queue_to(request.peer)}, PARC_OK);
}

// The way of a pair is chosen once, with its first message: so none can overtake another by another way.
std::int32_t Session::queue_to(std::int32_t row) {
  const auto to = engine_.address(place_.endpoint, row);
  if (!wants_neighbours_ || !to || to->place != protocol::here || !engine_.is_there(to->number)) return -1;
  const Session* const other = sessions_.of_endpoint(to->number);
  if (other != nullptr && other->attached() && !other->wants_neighbours_) return -1;
  const std::int32_t our_row = engine_.add_row(to->number, {protocol::here, place_.endpoint});
  if (our_row < 0 || std::max(row, our_row) >= shm::most_neighbour_rows) return -1;
  const std::int32_t queue = sessions_.letterboxes_.connect(place_.endpoint, to->number, our_row);
  if (queue >= 0) {
    engine_.keep_row(place_.endpoint, row);
    engine_.keep_row(to->number, our_row);
  }
  return queue;
}

void Session::ring_neighbour(const shm::Request& request) {
  const auto to = engine_.address(place_.endpoint, request.peer);
  if (to && to->place == protocol::here) sessions_.tell_neighbour(to->number);
}

void Session::withdraw(std::uint64_t id) {
  const Slot* const slot = slots_.find(id);
  if (slot != nullptr && slot->with == shm::With::neighbours) engine_.cancel(slot->handle);
}

// A read of a message that neighbours have matched, although that may not be here yet.
bool Session::is_matched(std::uint64_t id, const Slot& slot) {
  return shm::is_read(shm::slot_of(id)) &&
         (slot.with == shm::With::rendezvous || slot.with == shm::With::taken);
}

void Session::leave_unread(const shm::Request& request) {
  const auto from = engine_.address(place_.endpoint, request.peer);
  if (!from) return;
  sessions_.hooks_.unread(place_.endpoint, *from,
                          {.space = protocol::Space::programs, .tag = request.tag, .total = request.length});
}

// A neighbour was there first, and its write has been here: for this read, or for one that has had its place
// since.
bool Session::is_taken(std::uint64_t id) {
  const std::uint64_t number = shm::slot_of(id);
  return number < shm::read_slots && slots_[number].generation >= shm::generation_of(id) &&
         slots_[number].with == shm::With::taken;
}

// The message of a writer that has taken a read of a neighbour's: that read is as if it were made now, for
// this message alone.
bool Session::give_taken(const shm::Request& write) {
  const auto to = engine_.address(place_.endpoint, write.peer);
  if (!to || to->place != protocol::here || !engine_.is_there(to->number)) return true; // the write fails
  Session* const reader = sessions_.of_endpoint(to->number);
  if (reader == nullptr || !reader->attached() || reader->left()) return true;
  const std::int32_t row = engine_.add_row(to->number, {protocol::here, place_.endpoint});
  return row >= 0 && reader->read_taken(write, row);
}

// Nothing that a neighbour says can harm this session: what it claims has been published here, and its claim
// is checked.
bool Session::read_taken(const shm::Request& write, std::int32_t row) {
  const std::uint64_t number = shm::slot_of(write.extra);
  if (letterbox_.memory == nullptr || number >= shm::read_slots) return false;
  const shm::PostedRead& posted = letterbox_.memory->owner.posted[write.entry % shm::read_slots];
  const std::uint64_t owner = letterbox_.memory->all.owners[number].load(std::memory_order_acquire);
  if (posted.id.load(std::memory_order_relaxed) != write.extra ||
      !shm::is(owner, shm::generation_of(write.extra), shm::Owner::neighbour))
    return false;
  shm::Request read{};
  read.kind = shm::RequestKind::read;
  read.with = shm::With::taken;
  read.peer = row;
  read.id = write.extra;
  read.tag = write.id;
  read.flags = posted.flags.load(std::memory_order_relaxed) & (shm::flag_from_end | shm::flag_queued);
  const bool unplaced = slots_[number].unplaced == shm::generation_of(write.extra);
  read.pieces = unplaced ? shm::no_memory_yet : posted.pieces.load(std::memory_order_relaxed);
  read.address = posted.address.load(std::memory_order_relaxed);
  read.length = posted.length.load(std::memory_order_relaxed);
  // What was shared there, this read or one that the program has withdrawn since, is nobody's any more.
  if (const Slot& before = slots_[number]; before.busy && before.with == shm::With::neighbours)
    engine_.cancel(before.handle);
  Slot* const slot = slots_.take(read.id, true);
  if (slot == nullptr) return false;
  slot->with = read.with;
  slot->tag = write.tag;
  begin(read, *slot);
  return true;
}

protocol::OwnerWord Session::owner_word(std::uint64_t number, const Slot& slot) {
  if (slot.with != shm::With::neighbours) return {};
  return {.word = number < shm::read_slots ? &letterbox_.memory->all.owners[number] : &tables_->owner(number),
          .open = shm::owner_word(slot.generation, shm::Owner::nobody),
          .ours = shm::owner_word(slot.generation, shm::Owner::kernel)};
}

// Whether a shared read's end is the kernel's to tell. Where nothing comes from other hosts any more the
// program is told that, and finds out whether a neighbour has still sent something.
bool Session::may_tell(std::uint64_t number, const Slot& slot, const protocol::Outcome& outcome) {
  const protocol::OwnerWord owner = owner_word(number, slot);
  if (owner.word == nullptr || owner.word->load(std::memory_order_acquire) == owner.ours) return true;
  if (outcome.fault == protocol::Fault::canceled) return owner.take();
  if (outcome.fault != protocol::Fault::peer) return false;
  std::uint64_t open = owner.open;
  if (owner.word->compare_exchange_strong(open,
                                          shm::owner_word(slot.generation, shm::Owner::given_up,
                                                          static_cast<std::uint32_t>(outcome.departure)),
                                          std::memory_order_acq_rel)) {
    letterbox_.memory->kernel.changes.fetch_add(1, std::memory_order_release);
    completed();
  }
  return false;
}

} // namespace parc::daemon
