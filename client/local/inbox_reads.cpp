// SPDX-License-Identifier: BSD-3-Clause
// What becomes of a read that is posted: who may take it, and how it ends without a message. And on which
// core a thread polls for its message.
#include "client/local/inbox.hpp"

#include "client/local/polling_cores.hpp"
#include "protocol/wire.hpp"
#include "system/coarse_clock.hpp"
#include "system/core.hpp"

#include <algorithm>
#include <utility>

namespace parc::client {

bool Inbox::push(const Read& read) {
  shm::Request shared = read.request();
  shared.with = shm::With::neighbours;
  return ring_.push(shared, read.probes() ? shm::Sleep::deep : shm::Sleep::light);
}

void Inbox::share_reads() {
  if (shares_.load(std::memory_order_acquire)) return; // with each read from another host
  const Hold hold(*this);
  share_locked();
}

// In their order. What a neighbour has taken is that one's business; where the kernel has gone the waits say
// so.
void Inbox::share_locked() {
  if (shares_.load(std::memory_order_relaxed)) return;
  for (Read& read : all_) {
    if (!std::exchange(read.kept, false)) continue;
    read.shared = true;
    if (is_free(read)) (void)push(read);
  }
  shares_.store(true, std::memory_order_release); // who sees it pushes behind these
}

bool Inbox::cancel(parc_op id) {
  const Hold hold(*this);
  Read* const read = posted_read(id);
  if (read == nullptr || !take_read(*read)) return false;
  unpost(*read);
  end(id, {.error = PARC_ECANCELED});
  tell_threads();
  return true;
}

// Its caller holds its slot: nobody else ends its use of that memory.
LocalProgress::Unplaced Inbox::unplace(parc_op id) {
  const Hold hold(*this);
  Read* const read = posted_read(id);
  if (read == nullptr || read->probes() || !is_free(*read)) return {};
  read->pieces = shm::no_memory_yet;
  read->address = 0;
  const Slot slot = slot_of(id);
  operations_.set_late(slot, true);
  return {.block = operations_.entry(slot).take_block(),
          .with = read->shared          ? shm::With::neighbours
                  : may_be_taken(*read) ? shm::With::taken
                                        : shm::With::nobody};
}

// Its message may also have come by this library since, and has not gone into the block then.
bool Inbox::place_again(parc_op id, void* block) {
  const Hold hold(*this);
  const Slot slot = slot_of(id);
  const std::uint64_t word = owner_word(slot).load(std::memory_order_acquire);
  const std::uint64_t generation = shm::generation_of(static_cast<std::uint64_t>(id));
  if (!shm::is(word, generation, shm::Owner::kernel) && !shm::is(word, generation, shm::Owner::neighbour))
    return false;
  operations_.entry(slot).set_block(block, operations_.entry(slot).length);
  operations_.set_late(slot, false);
  return true;
}

void Inbox::close() {
  const Hold hold(*this);
  closed_ = true;
  disarm();
  drain_locked();
  for (auto next = all_.begin(); next != all_.end();) {
    Read& read = *next++;
    if (!take_read(read)) continue;
    unpost(read);
    end(read.id(), {.error = PARC_ECANCELED});
  }
  const auto leave_unread = [this](StoredMessage& message) {
    if (is_offered(message, false)) tell_unread(*message.pair, message.cell);
  };
  std::ranges::for_each(arrivals_, leave_unread);
  std::ranges::for_each(claimed_, leave_unread);
  tell_threads();
}

void Inbox::end_taken() {
  const Hold hold(*this);
  while (!all_.empty()) {
    Read& read = all_.front();
    unpost(read);
    if (is_pending(read)) end(read.id(), {.error = PARC_ECANCELED});
  }
}

void Inbox::tell_unread(const Neighbour& from, const shm::Cell& cell) {
  if (cell.space != protocol::Space::programs) return;
  shm::Request request{};
  request.kind = shm::RequestKind::unread;
  request.peer = from.row;
  request.read.tag = cell.tag;
  request.length = shm::length_of(cell);
  (void)ring_.push(request, shm::Sleep::light);
}

bool Inbox::is_pending(const Read& read) const {
  return operations_.shared(slot_of(read.id())).state.load(std::memory_order_acquire) ==
         shm::state_word(read.generation(), shm::Phase::pending);
}

// Of a published read: somebody may still want to know of it, to take it or, having taken it, to ask for the
// copy.
bool Inbox::is_open(std::uint64_t id) {
  const std::uint64_t word = own_.all.owners[shm::slot_of(id)].load(std::memory_order_acquire);
  const std::uint64_t generation = shm::generation_of(id);
  return word == shm::owner_word(generation, shm::Owner::nobody) ||
         (shm::is(word, generation, shm::Owner::neighbour) &&
          operations_.shared(slot_of(static_cast<parc_op>(id))).state.load(std::memory_order_acquire) ==
              shm::state_word(generation, shm::Phase::pending));
}

// One that its thread does not wait for, or that a long message may be for.
bool Inbox::may_be_taken(const Read& read) const {
  return (read.background || (read.length > shm::huge_body && !read.probes())) &&
         own_.kernel.progress == shm::Progress::sender;
}

// In the order of posting, without a gap: who takes one must have seen all that are older. One behind the
// tables' first block is not published: neighbours do not reach its owner word.
void Inbox::publish(Read& read) {
  shm::Letterbox::OfOwner& own = own_.owner;
  const std::uint64_t posts = own.posts.load(std::memory_order_relaxed);
  std::uint64_t first = own.first.load(std::memory_order_relaxed);
  while (first != posts && !is_open(own.posted[first % shm::read_slots].id.load(std::memory_order_relaxed)))
    ++first;
  own.first.store(first, std::memory_order_relaxed);
  read.published =
      unpublished_ == 0 && posts - first < shm::read_slots && slot_of(read.id()) < shm::read_slots;
  if (!read.published) {
    ++unpublished_;
    return;
  }
  std::atomic_thread_fence(std::memory_order_release);
  shm::PostedRead& posted = own.posted[posts % shm::read_slots];
  posted.id.store(read.operation, std::memory_order_relaxed);
  posted.tag.store(read.tag, std::memory_order_relaxed);
  posted.ignore.store(read.ignore, std::memory_order_relaxed);
  posted.row.store(read.peer, std::memory_order_relaxed);
  posted.space.store(read.space, std::memory_order_relaxed);
  posted.flags.store(read.flags, std::memory_order_relaxed);
  posted.pieces.store(read.pieces, std::memory_order_relaxed);
  posted.fragments.store(operations_.entry(slot_of(read.id())).takes_fragments() ? 1 : 0,
                         std::memory_order_relaxed);
  posted.address.store(read.address, std::memory_order_relaxed);
  posted.length.store(read.length, std::memory_order_relaxed);
  own.posts.store(posts + 1, std::memory_order_release);
}

bool Inbox::is_free(const Read& read) {
  const std::uint64_t generation = read.generation();
  const std::uint64_t word = owner_word(read).load(std::memory_order_acquire);
  return shm::is(word, generation, shm::Owner::nobody) || shm::is(word, generation, shm::Owner::given_up);
}

// Whether it is ours and nobody else's; the kernel forgets it then.
bool Inbox::take_read(Read& read, bool withdraws) {
  const std::uint64_t generation = read.generation();
  const std::uint64_t ours = shm::owner_word(generation, shm::Owner::library);
  std::uint64_t seen = shm::owner_word(generation, shm::Owner::nobody);
  if (owner_word(read).compare_exchange_strong(seen, ours, std::memory_order_seq_cst,
                                               std::memory_order_acquire)) {
    if (withdraws && may_be_in_kernel(read)) withdraw(read);
    return true;
  }
  if (!shm::is(seen, generation, shm::Owner::given_up)) return false;
  owner_word(read).store(ours, std::memory_order_relaxed);
  return true;
}

void Inbox::withdraw(const Read& read) {
  shm::Request request{};
  request.kind = shm::RequestKind::withdraw;
  request.id = read.operation;
  (void)ring_.push(request, shm::Sleep::light);
}

void Inbox::unpost(Read& read) {
  if (!read.probes() && !read.published) --unpublished_;
  if (std::exchange(read.background, false)) --background_;
  if (read.posted_as != Read::not_posted)
    posted_.remove(read);
  else
    read.protocol::hook::Hook<protocol::hook::Queue>::unlink(); // a probe, or one that was set aside
  read.protocol::hook::Hook<protocol::hook::Owned>::unlink();
}

// First what has been said, then what was sent before: only then is it known that nothing more comes. False:
// something could not be drained yet.
bool Inbox::look_at_departures() {
  const auto word = [this](const Neighbour& from) -> std::uint32_t {
    return own_.kernel.from[from.place].departed.load(std::memory_order_acquire);
  };
  for (std::uint32_t i = 0; i < sending_; ++i) senders_[i]->leaves_as = word(*senders_[i]);
  for (Read& read : all_)
    read.given_up = read.shared && shm::is(owner_word(read).load(std::memory_order_acquire),
                                           read.generation(), shm::Owner::given_up);
  // Who began to send before a read was given up is known to the kernel: its message may be that read's.
  hear_new_senders();
  bool all_drained = true;
  for (std::uint32_t i = 0; i < sending_;) {
    Neighbour& from = *senders_[i];
    drain(from);
    all_drained &= !from.stopped;
    if (from.leaves_as == 0 || from.stopped) {
      ++i;
      continue;
    }
    from.departed = from.leaves_as;
    keep_stored(from);
    own_.owner.drained[from.place].store(shm::drained_for_good, std::memory_order_release);
    senders_[i] = senders_[--sending_];
  }
  for (auto next = all_.begin(); next != all_.end();) {
    Read& read = *next++;
    const auto departure = hopeless(read, all_drained);
    if (!departure) continue;
    unpost(read);
    fail(read, *departure);
  }
  return all_drained;
}

// How whom it waits for has departed (none: all have, in whichever way), where nothing will come; such a read
// is nobody else's. One that was taken by a neighbour who departed before it had asked for the copy ends as
// one does whose message breaks off. (Were it free again, messages that found it taken would be overtaken.)
std::optional<std::uint32_t> Inbox::hopeless(Read& read, bool all_drained) {
  const std::uint64_t generation = read.generation();
  const std::uint64_t word = owner_word(read).load(std::memory_order_acquire);
  if (shm::is(word, generation, shm::Owner::neighbour)) {
    const std::uint32_t place = shm::place_in(word);
    const std::int32_t row = place < accepted_ ? own_.kernel.from[place].row : -1;
    if (row < 0 || row >= shm::most_neighbour_rows) return {};
    const Neighbour& taker = neighbour(row);
    // All that it has sent has been looked at by then.
    if (taker.place != place || taker.departed == 0) return {};
    if (!is_pending(read)) return {}; // it has asked
    if (may_be_in_kernel(read)) withdraw(read);
    return taker.departed;
  }
  if (read.kept) return {}; // the kernel is to say so
  const bool drained = read.pair != nullptr ? !read.pair->stopped : all_drained;
  if (read.shared ? !read.given_up || !drained : read.pair->departed == 0) return {};
  if (!take_read(read)) return {};
  return read.shared ? shm::place_in(word) : read.pair->departed;
}

// What it has announced and not given up it never will, and what it was killed in the middle of is no more.
// Its letterbox is not looked at again.
void Inbox::keep_stored(Neighbour& from) {
  const bool left = from.departed == static_cast<std::uint32_t>(protocol::Departure::left);
  for (auto next = from.stored.begin(); next != from.stored.end();) {
    StoredMessage& message = *next++;
    const bool whole = message.cell.kind == shm::CellKind::whole;
    if (!whole && (!left || !is_offered(message, true))) forget(message);
  }
}

// Somebody else has it: no message is given to it, but what becomes of who has it is looked at.
void Inbox::set_aside(Read& read) {
  posted_.remove(read);
  if (!std::exchange(read.published, true)) --unpublished_;
}

// What may be for them lies where it cannot be read: they would wait for ever.
void Inbox::fail_shared() {
  for (auto next = all_.begin(); next != all_.end();) {
    Read& read = *next++;
    if (!(read.shared || read.kept) || !take_read(read)) continue;
    unpost(read);
    end(read.id(), {.error = PARC_ENOMEM});
  }
}

// The same where there is no memory to store what is before it.
void Inbox::starve(Neighbour& from) {
  from.starved = true;
  for (auto next = all_.begin(); next != all_.end();) {
    Read& read = *next++;
    if ((read.pair != nullptr && read.pair != &from) || !take_read(read)) continue;
    unpost(read);
    end(read.id(), {.error = PARC_ENOMEM});
  }
}

bool Inbox::starves(const Read& read) const {
  if (read.pair != nullptr) return read.pair->starved;
  return std::any_of(senders_.begin(), senders_.begin() + sending_,
                     [](const Neighbour* from) { return from->starved; });
}

void Inbox::fail(const Read& read, std::uint32_t departure) {
  end(read.id(), {.error = PARC_EPEER, .departure = departure});
}

// Where to is found out under the lock; the system may take a slice of the scheduler's for the way. The
// scheduler may take the thread back when a core is idle for a moment.
void Inbox::spread() {
  constexpr std::uint32_t polls_a_question = 16, between_moves_ms = 10;
  int here = 0, better = 0;
  {
    if (inside_) return;
    const Hold hold(*this, std::try_to_lock);
    if (!hold) return;
    note_look();
    if (++polls_ % polls_a_question != 0) return;
    here = current_core();
    better = better_core(here);
    if (coarse_ms() - moved_ms_ < between_moves_ms) better = here;
    note_core(better);
    if (better == here) return;
    moved_ms_ = coarse_ms();
  }
  move_to_core(better);
}

void Inbox::note_core(int core) {
  const auto word = static_cast<std::uint32_t>(core + 1);
  if (own_.owner.core.load(std::memory_order_relaxed) != word)
    own_.owner.core.store(word, std::memory_order_relaxed);
}

// Of two that share one the second goes, by their letterboxes' numbers, and the first where that one stays:
// it may not hear from the first.
int Inbox::better_core(int here) {
  constexpr std::uint32_t patience = 4;
  PollingCores cores;
  bool shared = false, first = true;
  for (std::uint32_t i = 0; i < sending_; ++i) {
    Neighbour& from = *senders_[i];
    const shm::Letterbox::OfOwner& there = from.from->owner;
    const std::uint32_t looks = there.looks.load(std::memory_order_relaxed);
    const bool polls = std::exchange(from.looks, looks) != looks; // since this was asked last
    const int core = static_cast<int>(there.core.load(std::memory_order_relaxed) - 1);
    cores.add(core, polls);
    if (!polls || core != here) continue;
    shared = true;
    first = first && areas_.own_number() < own_.kernel.from[from.place].at.number;
  }
  shared_ = shared ? shared_ + 1 : 0;
  cpu_set_t allowed;
  if (!shared || (first && shared_ < patience) || sched_getaffinity(0, sizeof allowed, &allowed) != 0)
    return here;
  return cores.better(here, allowed, here + 1);
}

} // namespace parc::client
