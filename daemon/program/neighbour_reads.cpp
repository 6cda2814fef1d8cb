// SPDX-License-Identifier: BSD-3-Clause
#include "daemon/program/neighbour_reads.hpp"

#include <algorithm>

namespace parc::daemon {

void NeighbourReads::open(bool wanted, const shm::Tables& tables) {
  tables_ = &tables;
  Letterboxes& all = needs_.letterboxes;
  const std::uint64_t endpoint = needs_.member.endpoint;
  const Letterboxes::Box* const box =
      wanted ? all.open(endpoint) : all.find(endpoint); // somebody may have written already
  if (box == nullptr) return;
  letterbox_ = *box;
  wanted_ = wanted;
}

std::optional<std::uint64_t> NeighbourReads::endpoint_in(std::int32_t row) const {
  const auto to = needs_.engine.address(needs_.member.endpoint, row);
  return to && to->place == protocol::here ? std::optional(to->number) : std::nullopt;
}

// The way of a pair is chosen once, with its first message: so none can overtake another by another way.
std::int32_t NeighbourReads::queue_to(std::int32_t row, const NeighbourReads* other) {
  protocol::Engine& engine = needs_.engine;
  const std::uint64_t from = needs_.member.endpoint;
  const auto to = endpoint_in(row);
  if (!wanted_ || !to || !engine.is_there(*to) || (other != nullptr && !other->wanted_)) return -1;
  const std::int32_t our_row = engine.add_row(*to, {protocol::here, from});
  if (our_row < 0 || std::max(row, our_row) >= shm::most_neighbour_rows) return -1;
  const std::int32_t queue = needs_.letterboxes.connect(from, *to, our_row);
  if (queue >= 0) {
    engine.keep_row(from, row);
    engine.keep_row(*to, our_row);
  }
  return queue;
}

bool NeighbourReads::must_ask_for_reads() const {
  return letterbox_.memory != nullptr &&
         letterbox_.memory->kernel.must_know.load(std::memory_order_relaxed) == 0 &&
         needs_.engine.must_know_reads(needs_.member.endpoint);
}

void NeighbourReads::ask_for_reads() const {
  shm::Letterbox::OfKernel& ours = letterbox_.memory->kernel;
  ours.must_know.store(1,
                       std::memory_order_seq_cst); // before what is published, and whose it is, is looked at
  ours.changes.fetch_add(1, std::memory_order_release);
}

// The memory of one that the program has got back is no longer what it has published.
shm::Request NeighbourReads::request_of(const shm::PostedRead& posted, std::uint64_t id) const {
  const bool unplaced = needs_.slots[shm::slot_of(id)].unplaced == shm::generation_of(id);
  shm::Request read{};
  read.kind = shm::RequestKind::read;
  read.id = id;
  read.flags = posted.flags.load(std::memory_order_relaxed);
  read.pieces = unplaced ? shm::no_memory_yet : posted.pieces.load(std::memory_order_relaxed);
  read.address = posted.address.load(std::memory_order_relaxed);
  read.length = posted.length.load(std::memory_order_relaxed);
  return read;
}

// None: it is somebody's, or none that other hosts may answer. What is written over meanwhile is over.
std::optional<shm::Request> NeighbourReads::shared_read(std::uint64_t at) const {
  const shm::Letterbox::OfOwner& owner = letterbox_.memory->owner;
  const shm::PostedRead& posted = owner.posted[at % shm::read_slots];
  const std::uint64_t id = posted.id.load(std::memory_order_relaxed), number = shm::slot_of(id);
  if (number >= shm::read_slots || is_known(id)) return {};
  shm::Request read = request_of(posted, id);
  read.with = shm::With::neighbours;
  read.peer = posted.row.load(std::memory_order_relaxed);
  read.space = posted.space.load(std::memory_order_relaxed);
  read.read.tag = posted.tag.load(std::memory_order_relaxed);
  read.read.ignore = posted.ignore.load(std::memory_order_relaxed);
  std::atomic_thread_fence(std::memory_order_acquire);
  if (owner.first.load(std::memory_order_relaxed) > at) return {};
  const std::uint64_t open = shm::owner_word(shm::generation_of(id), shm::Owner::nobody);
  if (letterbox_.memory->all.owners[number].load(std::memory_order_seq_cst) != open) return {};
  return has_queue_from(read.peer) ? std::nullopt : std::optional(read);
}

bool NeighbourReads::has_queue_from(std::int32_t row) const {
  const shm::Letterbox::OfKernel& ours = letterbox_.memory->kernel;
  const auto* const end =
      ours.from + std::min(ours.senders.load(std::memory_order_relaxed), shm::max_neighbours);
  return row >= 0 && std::find_if(ours.from, end,
                                  [row](const shm::SenderEntry& sender) { return sender.row == row; }) != end;
}

bool NeighbourReads::is_known(std::uint64_t id) const {
  return needs_.slots[shm::slot_of(id)].generation >= shm::generation_of(id);
}

void NeighbourReads::forget_older(std::uint64_t id) {
  const Slot& slot = needs_.slots[shm::slot_of(id)];
  if (slot.busy && slot.with == shm::With::neighbours && slot.generation < shm::generation_of(id))
    needs_.engine.cancel(slot.handle);
}

void NeighbourReads::leave_unread(const shm::Request& request) const {
  const auto from = needs_.engine.address(needs_.member.endpoint, request.peer);
  if (!from) return;
  needs_.events.unread(
      needs_.member.endpoint, *from,
      {.space = protocol::Space::programs, .tag = request.read.tag, .total = request.length});
}

void NeighbourReads::withdraw(std::uint64_t id) {
  const Slot* const slot = needs_.slots.find(id);
  if (slot != nullptr && slot->with == shm::With::neighbours) needs_.engine.cancel(slot->handle);
}

bool NeighbourReads::is_matched(std::uint64_t id, const Slot& slot) {
  return shm::is_read(shm::slot_of(id)) &&
         (slot.with == shm::With::rendezvous || slot.with == shm::With::taken);
}

std::optional<shm::Request> NeighbourReads::take(const shm::Request& write, std::int32_t row) {
  const std::uint64_t number = shm::slot_of(write.write.read),
                      generation = shm::generation_of(write.write.read);
  if (letterbox_.memory == nullptr || number >= shm::read_slots) return {};
  const shm::PostedRead& posted = letterbox_.memory->owner.posted[write.entry % shm::read_slots];
  auto& word = letterbox_.memory->all.owners[number];
  std::uint64_t owner = word.load(std::memory_order_acquire);
  if (posted.id.load(std::memory_order_relaxed) != write.write.read ||
      !shm::is(owner, generation, shm::Owner::neighbour))
    return {};
  const Slot& before = needs_.slots[number];
  shm::Request read = request_of(posted, write.write.read);
  read.with = shm::With::taken;
  read.peer = row;
  read.read.tag = write.id;
  read.flags &= protocol::MessageFlags::from_end | protocol::MessageFlags::queued;
  // What was shared there, this read or one that the program has withdrawn since, is nobody's any more.
  if (before.busy && before.with == shm::With::neighbours) needs_.engine.cancel(before.handle);
  // Once, and behind that: the library may have had all of it in fragments meanwhile.
  if (!word.compare_exchange_strong(owner, shm::owner_word(generation, shm::Owner::kernel),
                                    std::memory_order_acq_rel))
    return {};
  Slot* const slot = needs_.slots.take(read.id, true);
  if (slot == nullptr) return {};
  slot->with = read.with;
  slot->tag = write.write.tag;
  return read;
}

protocol::OwnerWord NeighbourReads::owner_word(std::uint64_t number, const Slot& slot) const {
  if (slot.with != shm::With::neighbours) return {};
  return {.word = number < shm::read_slots ? &letterbox_.memory->all.owners[number] : &tables_->owner(number),
          .open = shm::owner_word(slot.generation, shm::Owner::nobody),
          .ours = shm::owner_word(slot.generation, shm::Owner::kernel)};
}

NeighbourReads::Teller NeighbourReads::teller(std::uint64_t number, const Slot& slot,
                                              const protocol::Outcome& outcome) {
  const protocol::OwnerWord owner = owner_word(number, slot);
  if (owner.word == nullptr || owner.word->load(std::memory_order_acquire) == owner.ours)
    return Teller::kernel;
  if (outcome.fault == protocol::Fault::canceled) return owner.take() ? Teller::kernel : Teller::library;
  if (outcome.fault != protocol::Fault::peer) return Teller::library;
  const auto given_up =
      shm::owner_word(slot.generation, shm::Owner::given_up, static_cast<std::uint32_t>(outcome.departure));
  std::uint64_t open = owner.open;
  if (!owner.word->compare_exchange_strong(open, given_up, std::memory_order_acq_rel)) return Teller::library;
  letterbox_.memory->kernel.changes.fetch_add(1, std::memory_order_release);
  return Teller::library_of_departure;
}

} // namespace parc::daemon
