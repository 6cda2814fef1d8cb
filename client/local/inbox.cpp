// SPDX-License-Identifier: BSD-3-Clause
#include "client/local/inbox.hpp"

#include "client/base/pieces.hpp"
#include "protocol/wire.hpp"
#include "system/coarse_clock.hpp"

#include <algorithm>
#include <cstring>
#include <memory>
#include <unistd.h>
#include <utility>

namespace parc::client {
namespace {

constexpr std::size_t neighbours_bytes = shm::most_neighbour_rows * sizeof(Neighbour);
constexpr std::uint64_t most_stored = std::uint64_t{256} << 20; // bytes of memory, for one sender's messages

Operations::End message_of(const Neighbour& from, const shm::Cell& cell) {
  return {.source = from.row,
          .tag = cell.tag,
          .data = cell.data,
          .flags = cell.flags,
          .total = shm::length_of(cell)};
}

} // namespace

thread_local bool Inbox::inside_ = false;
thread_local std::uint64_t Inbox::interrupt_word_ = 0;

Inbox::Inbox(shm::Letterbox& own, Areas& areas, shm::NeighbourCounters& counters, Operations& operations,
             Ring& ring, Sleep& sleep, int rank)
    : own_(own), areas_(areas), counters_(counters), operations_(operations), ring_(ring), sleep_(sleep),
      rank_(rank), neighbours_(static_cast<Neighbour*>(map_own(neighbours_bytes))),
      shares_(own.kernel.progress != shm::Progress::sender) {}

Inbox::~Inbox() {
  while (!all_.empty()) unpost(all_.front());
  for (Read* const run : reads_) {
    if (run == nullptr) continue;
    std::destroy_n(run, run_reads);
    unmap_own(run, run_reads * sizeof(Read));
  }
  while (!arrivals_.empty()) forget(arrivals_.front());
  while (!claimed_.empty()) forget(claimed_.front());
  unmap_own(neighbours_, neighbours_bytes);
}

// Zeroed memory is none yet: a list's head refers to itself.
Neighbour& Inbox::neighbour(int row) {
  Neighbour& at = neighbours_[row];
  if (at.made) return at;
  new (&at) Neighbour;
  at.row = row;
  at.made = true;
  return at;
}

void Inbox::Read::take(const shm::Request& request) {
  operation = request.id;
  address = request.address;
  length = request.length;
  peer = request.peer;
  pieces = request.pieces;
  flags = request.flags;
  kind = request.kind;
  space = request.space;
  arrived = 0;
  tag = request.read.tag;
  ignore = request.read.ignore;
}

shm::Request Inbox::Read::request() const {
  shm::Request request{};
  request.kind = kind;
  request.flags = flags;
  request.pieces = pieces;
  request.peer = peer;
  request.id = operation;
  request.space = space;
  request.read = {tag, ignore, 0};
  request.address = address;
  request.length = length;
  return request;
}

Inbox::Read& Inbox::read_at(Slot slot) {
  const std::uint32_t index = shm::index_of(slot);
  Read*& run = reads_[index / run_reads];
  if (run == nullptr) {
    auto* const made = static_cast<Read*>(map_own(run_reads * sizeof(Read)));
    std::uninitialized_value_construct_n(made, run_reads);
    run = made;
  }
  return run[index % run_reads];
}

Inbox::Read* Inbox::posted_read(parc_op id) {
  const Slot slot = slot_of(id);
  if (!operations_.tables().has(slot) || !shm::is_read(slot)) return nullptr;
  Read* const run = reads_[shm::index_of(slot) / run_reads];
  if (run == nullptr) return nullptr;
  Read& read = run[shm::index_of(slot) % run_reads];
  return read.posted() && read.id() == id ? &read : nullptr;
}

bool Inbox::post(const shm::Request& request, bool background) {
  const Hold hold(*this);
  if (closed_) return false;
  note_look();
  drain_locked();
  Read& read = read_at(slot_of(static_cast<parc_op>(request.id)));
  if (read.posted()) unpost(read); // the kernel had a message for what was here before
  read.take(request);
  read.pair = request.peer >= 0 ? &neighbour(request.peer) : nullptr;
  read.number = ++posts_;
  const bool anybodys = read.pair == nullptr || read.pair->from == nullptr;
  const bool shares = shares_.load(std::memory_order_relaxed);
  read.shared = anybodys && shares;
  read.kept = anybodys && !shares;
  const bool waits = !read.probes() || !has(request.flags, MessageFlags::no_wait);
  if (StoredMessage* const message = find_offered(read)) {
    if (read.probes())
      answer(read, *message);
    else
      give(read, *message);
  } else if ((anybodys && unheard_) || starves(read)) {
    end(read.id(), {.error = PARC_ENOMEM});
  } else if (!waits) {
    if (read.shared) return ring_.push(request);
    end(read.id(), {});
  } else if (!anybodys && read.pair->departed != 0) {
    fail(read, read.pair->departed);
  } else {
    if (read.probes())
      probes_.push_back(read);
    else
      posted_.add(read);
    all_.push_back(read);
    owner_word(read).store(shm::owner_word(shm::generation_of(request.id), shm::Owner::nobody),
                           std::memory_order_release);
    read.published = true;
    read.background = background && !read.probes();
    if (read.background) ++background_;
    if (may_be_taken(read)) {
      note_call();
      publish(read);
      // Where the kernel would not find it. It says that it must know before it looks what is published.
      if (read.kept) std::atomic_thread_fence(std::memory_order_seq_cst);
      if (read.kept && (!read.published || kernel_must_know())) {
        share_locked();
        return true;
      }
    }
    if (!read.shared || push(read)) return true;
    unpost(read);
    return false;
  }
  tell_threads();
  return true;
}

bool Inbox::finds_nothing(const shm::Request& request) {
  const Hold hold(*this);
  if (closed_) return false;
  drain_locked();
  Read probe;
  probe.take(request);
  probe.flags &= ~MessageFlags::claim; // nothing is claimed here
  probe.pair = request.peer >= 0 ? &neighbour(request.peer) : nullptr;
  const bool shared = probe.pair == nullptr || probe.pair->from == nullptr;
  const bool nothing =
      find_offered(probe) == nullptr && !(shared && (unheard_ || !ring_.nothing_unread())) && !starves(probe);
  tell_threads();
  return nothing;
}

bool Inbox::hears(int row) {
  const Hold hold(*this);
  accept_senders();
  if (row >= shm::most_neighbour_rows) return false;
  return row < 0 ? accepted_ != 0 : neighbour(row).from != nullptr;
}

bool Inbox::has_claimed(std::uint64_t probe) {
  const Hold hold(*this);
  return std::ranges::find(claimed_, probe, &StoredMessage::claimed_by) != claimed_.end();
}

void Inbox::post_claimed(const shm::Request& request, std::uint64_t probe) {
  const Hold hold(*this);
  const auto message = std::ranges::find(claimed_, probe, &StoredMessage::claimed_by);
  if (message == claimed_.end()) return end(static_cast<parc_op>(request.id), {.error = PARC_EINVAL});
  give(request, *message->pair, message->cell, message->body);
  forget(*message);
  tell_threads();
}

// Its wait has ended without it, as the kernel has gone.
bool Inbox::forget(std::int64_t operation) {
  if (inside_) return false;
  const Hold hold(*this, std::try_to_lock);
  if (!hold) return false;
  if (Read* const read = posted_read(operation)) unpost(*read);
  return true;
}

bool Inbox::drain() {
  if (Ring::pushing() || inside_) return false; // in a handler that interrupted that
  const Hold hold(*this, std::try_to_lock);
  if (!hold) return false;
  note_look();
  const std::uint64_t before = fragments_;
  drain_locked();
  return fragments_ != before;
}

// What is said of departures is looked at first: then all that the departed have sent is seen.
void Inbox::drain_locked() {
  const std::uint32_t changes = own_.kernel.changes.load(std::memory_order_acquire);
  if (!shares_.load(std::memory_order_relaxed) && kernel_must_know()) share_locked();
  hear_new_senders();
  for (std::uint32_t i = 0; i < sending_; ++i) drain(*senders_[i]);
  if (changes != changes_ || left_to_look_) {
    changes_ = changes;
    left_to_look_ = !look_at_departures();
  }
  tell_threads();
}

bool Inbox::may_take_at_once(const Neighbour& from) const {
  return !closed_ && from.from != nullptr && !from.stopped && from.stored.empty() && all_.empty() &&
         own_.kernel.changes.load(std::memory_order_relaxed) == changes_ &&
         own_.kernel.senders.load(std::memory_order_relaxed) == accepted_;
}

// Others have their turn now and then.
Inbox::AtOnce Inbox::take_at_once(const parc_envelope& wanted, const iovec& buffer, parc_status& status) {
  constexpr std::uint32_t others_turn = 16;
  if (wanted.peer >= shm::most_neighbour_rows) return AtOnce::never;
  const Hold hold(*this);
  Neighbour& from = neighbour(wanted.peer);
  if (!may_take_at_once(from)) return AtOnce::never;
  if (sending_ > 1 && ++taken_at_once_ % others_turn == 0) return AtOnce::never;
  const shm::Cell* const there = published(from);
  if (there == nullptr) return AtOnce::not_yet;
  const shm::Cell cell = shm::copy_of(*there);
  if (cell.kind != shm::CellKind::whole || cell.space != protocol::Space::programs ||
      ((cell.tag ^ wanted.tag) & ~wanted.ignore) != 0 || cell.length > buffer.iov_len)
    return AtOnce::never;
  const std::byte* const bytes =
      cell.length <= shm::cell_bytes ? cell.bytes : shm::body_in(from.from->owner, cell);
  if (cell.length != 0) std::memcpy(buffer.iov_base, bytes, cell.length);
  status = Operations::status_after(message_of(from, cell));
  go_on(from, cell);
  tell_drained(from);
  return AtOnce::taken;
}

void Inbox::hear_new_senders() {
  if (own_.kernel.senders.load(std::memory_order_relaxed) != accepted_) accept_senders();
  if (unheard_) fail_shared();
}

void Inbox::accept_senders() {
  const std::uint32_t senders =
      std::min(own_.kernel.senders.load(std::memory_order_acquire), shm::max_neighbours);
  for (; accepted_ < senders; ++accepted_) {
    const shm::SenderEntry& place = own_.kernel.from[accepted_];
    const shm::Letterbox* const from = areas_.at(place.at);
    unheard_ = from == nullptr || !Areas::open_owner_words(*from);
    if (unheard_) return; // another time
    if (place.row < 0 || place.row >= shm::most_neighbour_rows || place.queue >= shm::max_neighbours)
      continue;
    Neighbour& who = neighbour(place.row);
    if (who.from != nullptr) continue;
    who.from = from;
    who.queue = place.queue;
    who.place = accepted_;
    senders_[sending_++] = &who;
  }
}

// Its next message, where that is there.
const shm::Cell* Inbox::published(Neighbour& from) {
  const shm::Letterbox::OfOwner& owner = from.from->owner;
  if (from.cell < 0) {
    const std::uint16_t first = owner.first_cells[from.queue].load(std::memory_order_acquire);
    if (first == 0) return nullptr;
    from.cell = (first - 1) % static_cast<int>(shm::letterbox_cells);
  }
  const shm::StampedCell& next = owner.cells[from.cell];
  const bool there = next.stamp.load(std::memory_order_acquire) == shm::stamp_of(from.queue, from.head);
  return there ? &next.cell : nullptr;
}

void Inbox::go_on(Neighbour& from, const shm::Cell& cell) {
  from.cell = static_cast<std::int32_t>(cell.next % shm::letterbox_cells);
  ++from.head;
  if (cell.kind != shm::CellKind::fragment || shm::fragment_in(cell).offset == 0)
    shm::count(counters_.received);
  shm::count(counters_.received_bytes, shm::length_of(cell));
}

void Inbox::drain(Neighbour& from) {
  if (from.stopped && !may_store(from)) return;
  from.stopped = from.starved = false;
  while (const shm::Cell* const there = published(from)) {
    const shm::Cell cell = shm::copy_of(*there);
    if (!take(from, cell, shm::body_in(from.from->owner, cell))) {
      from.stopped = true;
      break;
    }
    go_on(from, cell);
  }
  if (from.told != from.head) tell_drained(from);
  if (from.stopped && may_store(from)) starve(from);
}

// One that waits for cells is rung for: either it sees this or is seen waiting.
void Inbox::tell_drained(Neighbour& from) {
  from.told = from.head;
  own_.owner.drained[from.place].store(shm::drained_word(from.head, static_cast<std::uint32_t>(from.cell)),
                                       std::memory_order_release);
  light_fence(areas_.both_joined(*from.from));
  if (from.from->owner.wants_cells.load(std::memory_order_relaxed) != 0) ring(from.row);
}

void Inbox::ring(int row) {
  shm::Request bell{};
  bell.kind = shm::RequestKind::bell;
  bell.peer = row;
  (void)ring_.push(bell); // where the kernel has gone, nobody waits for long
}

// False: there is no read for it, and no room.
bool Inbox::take(Neighbour& from, const shm::Cell& cell, const std::byte* body) {
  if (cell.kind == shm::CellKind::fragment) {
    take_fragment(from, cell, body);
    return true;
  }
  bool taken = cell.kind == shm::CellKind::whole;
  while (Read* const read = posted_.find(&from, cell.space, cell.tag)) {
    if (!is_free(*read)) {
      set_aside(*read);
      continue;
    }
    if (!taken && !is_offered(from, cell, true)) return true; // it has been given up
    taken = true;
    if (!take_read(*read, cell.kind == shm::CellKind::whole)) {
      set_aside(*read);
      continue;
    }
    unpost(*read);
    give(read->request(), from, cell, body);
    return true;
  }
  if (closed_) {
    if (taken || is_offered(from, cell, false)) tell_unread(from, cell);
    return true;
  }
  StoredMessage* const message = store(from, cell, body);
  if (message == nullptr) return false;
  message->taken = taken;
  answer_probes(*message);
  return true;
}

// In their order, and no more than fits. What its sender says otherwise means nothing; where it has asked the
// kernel for the message meanwhile, as this program did not call, that ends the read.
void Inbox::take_fragment(Neighbour& from, const shm::Cell& cell, const std::byte* body) {
  const shm::Fragment fragment = shm::fragment_in(cell);
  Read* const read = posted_read(static_cast<parc_op>(fragment.read));
  if (read == nullptr || read->probes()) return;
  std::uint64_t word = owner_word(*read).load(std::memory_order_acquire);
  Operations::Entry& entry = operations_.entry(slot_of(read->id()));
  if (!shm::is(word, read->generation(), shm::Owner::neighbour) || shm::place_in(word) != from.place ||
      !entry.takes_fragments() || fragment.total > read->length || fragment.offset != read->arrived ||
      fragment.offset > fragment.total || cell.length > fragment.total - fragment.offset)
    return;
  // Who learns that the read is over makes a fence, too, and then looks whether there are fragments
  // (Waiter::is_copied_here): one of the two sees the other.
  entry.fragments.store(true, std::memory_order_relaxed);
  std::atomic_thread_fence(std::memory_order_seq_cst);
  if (!is_pending(*read)) return;
  scatter(entry.pieces, body, cell.length, fragment.offset);
  read->arrived += cell.length;
  ++fragments_;
  if (read->arrived != fragment.total ||
      !owner_word(*read).compare_exchange_strong(
          word, shm::owner_word(read->generation(), shm::Owner::library), std::memory_order_seq_cst))
    return;
  entry.placed = true;
  Operations::End message = message_of(from, cell);
  message.total = fragment.total;
  if (may_be_in_kernel(*read)) withdraw(*read);
  unpost(*read);
  end(read->id(), message);
}

// Of one that has gone no more comes than is in its queue.
bool Inbox::may_store(const Neighbour& from) {
  return from.stored_bytes < most_stored || from.leaves_as != 0;
}

StoredMessage* Inbox::store(Neighbour& from, const shm::Cell& cell, const std::byte* body) {
  if (!may_store(from)) return nullptr;
  const bool has_body = cell.kind == shm::CellKind::whole && cell.length > shm::cell_bytes;
  StoredMessage* const message = memory_.make(has_body ? cell.length : 0);
  if (message == nullptr) return nullptr;
  message->pair = &from;
  message->space = cell.space;
  message->tag = cell.tag;
  message->cell = cell;
  if (has_body) std::memcpy(message->body, body, cell.length);
  const std::uint64_t cost = StoredMessages::cost(*message);
  from.stored_bytes += cost;
  sleep_.backlog().stored(cost);
  arrivals_.add(*message, from.stored);
  return message;
}

void Inbox::answer_probes(StoredMessage& message) {
  for (auto next = probes_.begin(); next != probes_.end() && message.claimed_by == 0;) {
    Read& probe = *next++;
    if (!probe.fits(message.pair, message.space, message.tag)) continue;
    if (!is_offered(message, has(probe.flags, MessageFlags::claim))) return;
    unpost(probe);
    if (take_read(probe)) answer(probe, message);
  }
}

void Inbox::answer(const Read& probe, StoredMessage& message) {
  if (has(probe.flags, MessageFlags::claim)) {
    message.take_out();
    message.claimed_by = probe.operation;
    claimed_.push_back(message);
  }
  end(probe.id(), message_of(*message.pair, message.cell));
}

void Inbox::give(Read& read, StoredMessage& message) {
  give(read.request(), *message.pair, message.cell, message.body);
  forget(message);
}

// Of a rendezvous the program knows the message now; its bytes come by the kernel.
void Inbox::give(const shm::Request& request, Neighbour& from, const shm::Cell& cell, const std::byte* body) {
  const auto id = static_cast<parc_op>(request.id);
  Operations::End message = message_of(from, cell);
  if (cell.kind == shm::CellKind::rendezvous) {
    operations_.set_message(slot_of(id), message);
    shm::Request pull = request;
    pull.kind = shm::RequestKind::read;
    pull.with = shm::With::rendezvous;
    pull.peer = from.row;
    pull.read = {shm::rendezvous_in(cell).write, 0, 0};
    pull.flags &= MessageFlags::from_end | MessageFlags::queued;
    (void)ring_.push(pull); // where the kernel has gone its wait says so
    return;
  }
  Operations::Entry& entry = operations_.entry(slot_of(id));
  const std::byte* const bytes = cell.length <= shm::cell_bytes ? cell.bytes : body;
  const std::uint64_t fitting = std::min<std::uint64_t>(cell.length, request.length);
  entry.placed = entry.straight || entry.block == nullptr;
  if (entry.placed)
    scatter(entry.pieces, bytes, fitting);
  else
    std::memcpy(entry.block, bytes, fitting);
  message.error = cell.length > request.length ? PARC_ETRUNCATE : PARC_OK;
  end(id, message);
}

void Inbox::forget(StoredMessage& message) {
  const std::uint64_t cost = StoredMessages::cost(message);
  message.pair->stored_bytes -= cost;
  sleep_.backlog().stored_no_more(cost);
  memory_.drop(message); // its hooks unlink it
}

// Whether its writer has not given it up; `take`: and cannot any more.
bool Inbox::is_offered(const Neighbour& from, const shm::Cell& cell, bool take) {
  if (cell.kind == shm::CellKind::whole) return true;
  auto& word = const_cast<std::atomic<std::uint64_t>&>(shm::offer_of(cell, from.from->all.offers));
  const std::uint64_t generation = shm::generation_of(shm::rendezvous_in(cell).write);
  std::uint64_t open = shm::offer_word(generation, shm::Offer::open);
  const std::uint64_t seen = word.load(std::memory_order_acquire);
  if (seen == shm::offer_word(generation, shm::Offer::taken)) return true;
  if (!take) return seen == open;
  return word.compare_exchange_strong(open, shm::offer_word(generation, shm::Offer::taken),
                                      std::memory_order_acq_rel);
}

bool Inbox::is_offered(StoredMessage& message, bool take) {
  if (message.taken) return true;
  const bool offered = is_offered(*message.pair, message.cell, take);
  message.taken = offered && take;
  return offered;
}

// What was given up meanwhile is forgotten. A probe that claims takes the message as a read does.
StoredMessage* Inbox::find_offered(const Read& read) {
  const bool takes = !read.probes() || has(read.flags, MessageFlags::claim);
  for (;;) {
    StoredMessage* const message = find(read);
    if (message == nullptr || is_offered(*message, takes)) return message;
    forget(*message);
  }
}

StoredMessage* Inbox::find(const Read& read) {
  return arrivals_.find(read, read.pair != nullptr ? &read.pair->stored : nullptr);
}

void Inbox::end(parc_op id, const Operations::End& how) {
  operations_.end(id, how);
  ended_some_ = true;
}

// A thread that sleeps looks at what has ended when the kernel rings.
void Inbox::tell_threads() {
  if (std::exchange(ended_some_, false) && sleep_.ended_here()) ring(rank_);
}

void Inbox::look() {
  constexpr std::uint32_t looks_a_poll = 64;
  (void)drain();
  note_call();
  if (own_.owner.looks.load(std::memory_order_relaxed) % looks_a_poll == 0) spread();
}

// The neighbours read that line: it is written when it says something else.
void Inbox::note_call() {
  const std::uint32_t now = coarse_ms();
  if (own_.owner.called.load(std::memory_order_relaxed) != now)
    own_.owner.called.store(now, std::memory_order_relaxed);
}

bool Inbox::attend() {
  const shm::Letterbox::OfOwner& own = own_.owner;
  if (own.posts.load(std::memory_order_relaxed) == own.first.load(std::memory_order_relaxed)) return false;
  own_.owner.attending.fetch_add(1, std::memory_order_relaxed);
  return true;
}

bool Inbox::anything_published() const {
  return std::any_of(senders_.begin(), senders_.begin() + sending_,
                     [](Neighbour* from) { return !from->stopped && published(*from) != nullptr; });
}

// As announce_sleep: what is published before a sender sees that this is armed is seen here. Where the lock
// is another thread's, that one arms when it leaves.
void Inbox::arm() {
  if (interrupt_word_ == 0) interrupt_word_ = shm::interrupt_word(getpid(), gettid());
  const Hold hold(*this, std::try_to_lock);
  while (hold && background_ != 0 && !closed_) {
    own_.all.armed.store(interrupt_word_, std::memory_order_relaxed);
    std::atomic_thread_fence(std::memory_order_seq_cst);
    // One that has just begun to send may have published before it could see that this is armed.
    const bool new_sender = !unheard_ && has_new_senders();
    if (!anything_published() && !new_sender) return;
    disarm();
    drain_locked();
  }
}

void Inbox::interrupted() {
  counters_.interrupts.fetch_add(1, std::memory_order_relaxed);
  (void)drain();
}

bool Inbox::announce_sleep() {
  const Hold hold(*this);
  const std::uint32_t sleeps = own_.owner.sleeps.load(std::memory_order_relaxed);
  own_.owner.sleeps.store((sleeps + 1) | 1,
                          std::memory_order_relaxed); // another sleep, with a bell of its own
  areas_.barrier();
  if (has_new_senders() || own_.kernel.changes.load(std::memory_order_acquire) != changes_) return false;
  return !anything_published();
}

void Inbox::announce_awake() {
  const Hold hold(*this);
  const std::uint32_t sleeps = own_.owner.sleeps.load(std::memory_order_relaxed);
  if (sleeps % 2 != 0) own_.owner.sleeps.store(sleeps + 1, std::memory_order_relaxed);
}

} // namespace parc::client
