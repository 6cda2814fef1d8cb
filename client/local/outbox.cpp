// SPDX-License-Identifier: BSD-3-Clause
#include "client/local/outbox.hpp"

#include "client/base/pieces.hpp"
#include "parc/parc.h"
#include "shm/doorbell.hpp"
#include "system/coarse_clock.hpp"

#include <algorithm>
#include <csignal>

namespace parc::client {
namespace {

constexpr std::uint64_t worth_a_look = 16;  // messages to a receiver that may have been drained
constexpr int most_looks = 64;              // at its reads
constexpr std::uint32_t just_called_ms = 8; // who has called since then may well call again

bool has_huge_body(const shm::Cell& cell) {
  return shm::has_body(cell) && cell.length > shm::short_message;
}

} // namespace

void Outbox::describe(shm::Cell& cell, const LocalMessage& message) {
  cell.tag = message.tag;
  cell.data = message.data;
  cell.length = message.length & 0x1ffff; // at most shm::huge_body
  cell.kind = message.kind;
  cell.space = message.space;
  cell.flags = message.flags;
  if (message.kind == shm::CellKind::fragment)
    std::memcpy(cell.bytes, &message.fragment, sizeof message.fragment);
}

thread_local bool Outbox::inside_ = false;

Outbox::Outbox(shm::Letterbox& own, Areas& areas, std::mutex& areas_lock, shm::NeighbourCounters& counters,
               Operations& operations, CopyRoom& room, ControlCalls& control_calls, Ring& ring,
               Backlog& backlog, std::vector<bool> local_ranks)
    : own_(own), areas_(areas), areas_lock_(areas_lock), counters_(counters), operations_(operations),
      room_(room), control_calls_(control_calls), ring_(ring), standing_(backlog),
      local_ranks_(std::move(local_ranks)) {
  const auto fill_up = [](std::vector<std::uint16_t>& numbers, std::uint32_t count) {
    while (count-- > 0) numbers.push_back(static_cast<std::uint16_t>(count));
  };
  fill_up(free_cells_, shm::letterbox_cells);
  fill_up(free_small_, shm::most_published);
  fill_up(free_large_, shm::most_published);
  fill_up(free_huge_, shm::most_huge);
}

Outbox::~Outbox() {
  for (const auto& receiver : receivers_)
    while (!receiver->waiting.empty()) drop(*receiver, receiver->waiting.front());
}

Result<bool> Outbox::reaches(int row) {
  std::int32_t number = unknown;
  {
    const Hold hold(*this);
    number = number_of(row);
  }
  if (number != unknown) return number >= 0;
  PARC_TRY(asked, ask(row));
  return asked >= 0;
}

bool Outbox::knows(int row) {
  const Hold hold(*this);
  return number_of(row) >= 0;
}

bool Outbox::may_reach(int row) {
  const Hold hold(*this);
  return number_of(row) != through_kernel;
}

std::int32_t Outbox::number_of(int row) {
  const auto at = static_cast<std::size_t>(row);
  if (row >= shm::most_neighbour_rows || (at < local_ranks_.size() && !local_ranks_[at]))
    return through_kernel;
  return at < by_row_.size() ? by_row_[at] : unknown;
}

// Two threads may both ask, and are told the same. The receiver knows of the queue from here on, and waits
// for nothing that comes another way.
Result<std::int32_t> Outbox::ask(int row) {
  shm::Request request{};
  request.kind = shm::RequestKind::neighbour;
  request.peer = row;
  std::int32_t queue = -1;
  if (control_calls_.run(request, &queue) != PARC_OK) return through_kernel;
  const Hold hold(*this);
  const auto at = static_cast<std::size_t>(row);
  if (by_row_.size() <= at) by_row_.resize(at + 1, unknown);
  std::int32_t& number = by_row_[at];
  if (number != unknown) return number;
  if (queue < 0 || static_cast<std::uint32_t>(queue) >= shm::max_neighbours) return number = through_kernel;
  const shm::ReceiverEntry& there = own_.kernel.to[queue];
  auto made = std::make_unique<Receiver>();
  {
    const std::lock_guard areas(areas_lock_);
    made->to = areas_.at(there.at);
  }
  if (made->to == nullptr || there.sender >= shm::max_neighbours)
    return error(
        PARC_ENOMEM,
        "cannot attach the memory for messages to rank {}: this process has too little address space "
        "(RLIMIT_AS), or its host too little memory",
        row);
  made->may_take_reads = Areas::open_owner_words(*made->to);
  made->row = row;
  made->queue = static_cast<std::uint32_t>(queue);
  made->place = there.sender;
  made->oldest = made->empty = take_cell();
  own_.owner.first_cells[queue].store(static_cast<std::uint16_t>(made->empty + 1), std::memory_order_release);
  number = static_cast<std::int32_t>(receivers_.size());
  receivers_.push_back(std::move(made));
  backlogged_.reserve(receivers_.size());
  return number;
}

Outbox::Sent Outbox::send(int row, const LocalMessage& message, parc_op write) {
  bool rings = false;
  {
    const Hold hold(*this);
    look_at_departures();
    Receiver& receiver = receiver_at(row);
    if (closed_) return Sent::closed;
    if (has_departed(receiver)) return Sent::departed;
    if (message.kind == shm::CellKind::fragment) {
      if (!has_room_for_fragment(receiver)) return Sent::no_memory;
    } else if (!receiver.waiting.empty() || !has_cell(receiver)) {
      return wait(receiver, message, write);
    }
    rings = publish(receiver, message);
  }
  if (rings) ring(row);
  return Sent::published;
}

bool Outbox::send_at_once(int row, const LocalMessage& message) {
  bool rings = false;
  {
    const Hold hold(*this);
    look_at_departures();
    const std::int32_t at = number_of(row);
    if (at < 0 || closed_) return false;
    Receiver& receiver = *receivers_[static_cast<std::size_t>(at)];
    if (has_departed(receiver) || computes(receiver) || !receiver.waiting.empty() || !has_cell(receiver) ||
        !has_body(receiver, message.length))
      return false;
    rings = publish(receiver, message);
  }
  if (rings) ring(row);
  return true;
}

// Then there is a body, too, and an empty cell that comes next. Others are looked at where that may help.
bool Outbox::has_cell(Receiver& receiver) {
  if (receiver.in_flight() >= worth_a_look) reclaim(receiver);
  if (shares_.may_take(receiver.in_flight())) return true;
  if (shares_.any_of_others(receiver.in_flight())) reclaim_all();
  return shares_.may_take(receiver.in_flight());
}

// Those of short messages are as many as cells. What has been drained is taken back before: the one that was
// used last is still in the cache. A pair has as many as are left to all: one that is not drained leaves the
// others some.
bool Outbox::has_body(Receiver& receiver, std::uint64_t length) {
  if (length <= shm::short_message) return true;
  reclaim(receiver);
  if (receiver.huge < free_huge_.size()) return true;
  reclaim_all();
  return receiver.huge < free_huge_.size();
}

// Behind what its receiver has no memory for it would not be drained.
bool Outbox::has_room_for_fragment(Receiver& receiver) {
  return has_cell(receiver) && has_body(receiver, shm::fragment_bytes) && receiver.whole <= receiver.drained;
}

std::uint16_t Outbox::take_cell() {
  const std::uint16_t cell = free_cells_.back();
  free_cells_.pop_back();
  return cell;
}

// Whether its receiver is to be rung for.
bool Outbox::publish(Receiver& receiver, const LocalMessage& message) {
  shm::StampedCell& stamped = own_.owner.cells[receiver.empty];
  receiver.empty = take_cell();
  shares_.took(receiver.in_flight());
  stamped.cell.next = receiver.empty;
  fill(stamped.cell, message);
  stamped.stamp.store(shm::stamp_of(receiver.queue, receiver.sent++), std::memory_order_release);
  if (message.kind != shm::CellKind::fragment) receiver.whole = receiver.sent;
  receiver.huge += has_huge_body(stamped.cell);
  __builtin_prefetch(&own_.owner.cells[receiver.empty], 1); // its last reader has it
  if (message.kind != shm::CellKind::fragment || message.fragment.offset == 0) shm::count(counters_.messages);
  shm::count(counters_.bytes, shm::length_of(stamped.cell));
  if (message.kind == shm::CellKind::rendezvous) interrupt(receiver);
  return must_ring(receiver);
}

void Outbox::ring(int row) {
  shm::Request bell{};
  bell.kind = shm::RequestKind::bell;
  bell.peer = row;
  (void)ring_.push(bell); // where the kernel has gone, so has everybody
}

// One bell for each of its sleeps: either it sees what has just been published, or this sees that it sleeps.
bool Outbox::must_ring(Receiver& receiver) {
  light_fence(areas_.both_joined(*receiver.to));
  const std::uint32_t sleeps = receiver.to->owner.sleeps.load(std::memory_order_relaxed);
  if (sleeps % 2 == 0 || receiver.rung == sleeps) return false;
  receiver.rung = sleeps;
  return true;
}

// One that is armed, once. A stranger who has got the numbers ignores it.
void Outbox::interrupt(Receiver& receiver) {
  if (own_.kernel.progress != shm::Progress::receiver || !receiver.may_take_reads) return;
  std::atomic_thread_fence(std::memory_order_seq_cst); // as in Inbox::arm
  auto& armed = const_cast<std::atomic<std::uint64_t>&>(receiver.to->all.armed);
  std::uint64_t word = armed.load(std::memory_order_relaxed);
  if (word == 0 || !armed.compare_exchange_strong(word, 0, std::memory_order_relaxed)) return;
  (void)tgkill(static_cast<pid_t>(word >> 32), static_cast<pid_t>(word & UINT32_MAX), SIGURG);
}

void Outbox::fill(shm::Cell& cell, const LocalMessage& message) {
  describe(cell, message);
  if (message.kind != shm::CellKind::fragment && message.length <= shm::cell_bytes)
    return gather(cell.bytes, message.pieces, message.offset, message.length);
  auto& bodies = free_bodies(message.length);
  cell.body = bodies.back() & (shm::most_published - 1);
  bodies.pop_back();
  gather(shm::body_in(own_.owner, cell), message.pieces, message.offset, message.length);
}

void Outbox::offer(parc_op id) {
  const std::uint64_t generation = shm::generation_of(static_cast<std::uint64_t>(id));
  offer_word(id).store(shm::offer_word(generation, shm::Offer::open), std::memory_order_release);
}

bool Outbox::withdraw(parc_op id) {
  const std::uint64_t generation = shm::generation_of(static_cast<std::uint64_t>(id));
  std::uint64_t open = shm::offer_word(generation, shm::Offer::open);
  return offer_word(id).compare_exchange_strong(open, shm::offer_word(generation, shm::Offer::withdrawn),
                                                std::memory_order_acq_rel);
}

std::uint32_t Outbox::departure(int row) {
  const Hold hold(*this);
  return own_.kernel.to[receiver_at(row).queue].departed.load(std::memory_order_acquire);
}

bool Outbox::computes(int row) {
  const Hold hold(*this);
  look_at_departures();
  const Receiver& receiver = receiver_at(row);
  return !has_departed(receiver) && computes(receiver);
}

// What changes most is looked at last.
bool Outbox::computes(const Receiver& receiver) {
  const shm::Letterbox::OfOwner& reader = receiver.to->owner;
  return reader.attending.load(std::memory_order_relaxed) == 0 &&
         coarse_ms() - reader.called.load(std::memory_order_relaxed) > just_called_ms &&
         reader.posts.load(std::memory_order_relaxed) != reader.first.load(std::memory_order_relaxed);
}

// Its reads in their order, so that the first that fits is the oldest. One that is taken already is none.
std::optional<Outbox::Taken> Outbox::take(int row, protocol::Space space, std::uint64_t tag,
                                          std::optional<std::uint64_t> whole) {
  const Hold hold(*this);
  look_at_departures();
  Receiver& receiver = receiver_at(row);
  const shm::Letterbox::OfOwner& reader = receiver.to->owner;
  const std::int32_t as = receiver.to->kernel.from[receiver.place].row;
  const std::uint64_t posts = reader.posts.load(std::memory_order_acquire);
  const std::uint64_t first = reader.first.load(std::memory_order_acquire);
  if (!receiver.may_take_reads || receiver.left || !receiver.waiting.empty() ||
      posts - first > shm::read_slots)
    return {};
  for (std::uint64_t i = first; i != posts && i - first < most_looks; ++i) {
    const shm::PostedRead& posted = reader.posted[i % shm::read_slots];
    const std::uint64_t id = posted.id.load(std::memory_order_relaxed);
    const std::uint64_t wanted = posted.tag.load(std::memory_order_relaxed);
    const std::uint64_t ignore = posted.ignore.load(std::memory_order_relaxed);
    const std::int32_t from = posted.row.load(std::memory_order_relaxed);
    const protocol::Space in = posted.space.load(std::memory_order_relaxed);
    const bool takes = !whole || (posted.fragments.load(std::memory_order_relaxed) == 1 &&
                                  posted.length.load(std::memory_order_relaxed) >= *whole);
    std::atomic_thread_fence(std::memory_order_acquire);
    if (reader.first.load(std::memory_order_relaxed) > i)
      continue; // written over, perhaps: it is over in any case
    const bool fits = in == space && (from < 0 || from == as) && ((wanted ^ tag) & ~ignore) == 0;
    if (!fits || shm::slot_of(id) >= shm::read_slots) continue;
    auto& word = const_cast<std::atomic<std::uint64_t>&>(receiver.to->all.owners[shm::slot_of(id)]);
    std::uint64_t open = shm::owner_word(shm::generation_of(id), shm::Owner::nobody);
    if (word.load(std::memory_order_acquire) != open) continue;
    if (!takes || sent_before(receiver, space, wanted, ignore)) return {};
    if (word.compare_exchange_strong(
            open, shm::owner_word(shm::generation_of(id), shm::Owner::neighbour, receiver.place),
            std::memory_order_acq_rel)) {
      shm::count(counters_.taken);
      return Taken{id, static_cast<std::uint32_t>(i % shm::read_slots)};
    }
  }
  return {};
}

std::optional<Outbox::Taken> Outbox::take_for_fragments(int row, protocol::Space space, std::uint64_t tag,
                                                        std::uint64_t length) {
  {
    const Hold hold(*this);
    Receiver& receiver = receiver_at(row);
    if (!has_cell(receiver) || !has_body(receiver, length))
      return {}; // it would wait with the read in its hands
  }
  return take(row, space, tag, length);
}

Outbox::Attention Outbox::attention(int row) {
  const Hold hold(*this);
  Receiver& receiver = receiver_at(row);
  if (receiver.left || has_departed(receiver)) return {};
  const shm::Letterbox::OfOwner& there = receiver.to->owner;
  const bool attends = there.attending.load(std::memory_order_relaxed) != 0;
  const bool patient = receiver.impatient == 0;
  if (!attends && !patient) --receiver.impatient;
  return {.attends = attends, .looks = &there.looks, .patient = patient};
}

void Outbox::note_attention(int row, bool came_back) {
  constexpr std::uint32_t most_impatient = 64;
  const Hold hold(*this);
  Receiver& receiver = receiver_at(row);
  receiver.next_impatient = came_back ? 0 : std::min(2 * receiver.next_impatient + 1, most_impatient);
  receiver.impatient = receiver.next_impatient;
}

// Something that is published and may not be drained yet fits that read, too.
bool Outbox::sent_before(const Receiver& receiver, protocol::Space space, std::uint64_t tag,
                         std::uint64_t ignore) const {
  const std::uint64_t drained =
      shm::count_in(receiver.to->owner.drained[receiver.place].load(std::memory_order_acquire));
  std::uint16_t number = receiver.oldest;
  for (std::uint64_t i = receiver.drained; i != receiver.sent; ++i) {
    const shm::Cell& cell = own_.owner.cells[number].cell;
    number = cell.next;
    if (i >= drained && cell.kind != shm::CellKind::fragment && cell.space == space &&
        ((cell.tag ^ tag) & ~ignore) == 0)
      return true;
  }
  return false;
}

// The letterbox of one that has departed is given to somebody else when all have said that they are through
// with it.
void Outbox::look_at_departures() {
  const std::uint32_t changes = own_.kernel.changes.load(std::memory_order_acquire);
  if (changes == changes_) return;
  changes_ = changes;
  for (const auto& receiver : receivers_) {
    if (receiver->left || !has_departed(*receiver)) continue;
    reclaim(*receiver);
    free_cells_.push_back(receiver->empty);
    receiver->left = true;
    own_.owner.left[receiver->queue].store(1, std::memory_order_release);
  }
}

void Outbox::reclaim(Receiver& receiver) {
  if (receiver.left) return;
  const bool departed = has_departed(receiver);
  const std::uint64_t drained =
      shm::count_in(receiver.to->owner.drained[receiver.place].load(std::memory_order_acquire));
  const std::uint64_t until = departed ? receiver.sent : std::min(drained, receiver.sent);
  for (; receiver.drained < until; shares_.gave(receiver.in_flight())) {
    const shm::Cell& cell = own_.owner.cells[receiver.oldest].cell;
    if (shm::has_body(cell)) free_bodies(cell.length).push_back(cell.body);
    receiver.huge -= has_huge_body(cell);
    free_cells_.push_back(receiver.oldest);
    receiver.oldest = cell.next;
    ++receiver.drained;
  }
}

void Outbox::reclaim_all() {
  for (const auto& receiver : receivers_) reclaim(*receiver);
}

void Outbox::close() {
  const Hold hold(*this);
  closed_ = true;
}

} // namespace parc::client
