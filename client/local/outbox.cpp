// SPDX-License-Identifier: BSD-3-Clause
#include "client/local/outbox.hpp"

#include "client/pieces.hpp"
#include "parc/parc.h"
#include "shm/doorbell.hpp"

#include <algorithm>
#include <cstring>

namespace parc::client {
namespace {

constexpr std::uint64_t worth_a_look = 16; // messages to a receiver that may have been drained

} // namespace

Outbox::Outbox(shm::Letterbox& own, Areas& areas, std::mutex& areas_lock, Errand& errand, Ring& ring,
               std::vector<bool> local_ranks)
    : own_(own), areas_(areas), areas_lock_(areas_lock), errand_(errand), ring_(ring),
      local_ranks_(std::move(local_ranks)) {
  for (std::uint32_t cell = shm::letterbox_cells; cell-- > 0;)
    free_.push_back(static_cast<std::uint16_t>(cell));
}

bool Outbox::reaches(int row) {
  std::int32_t way = unknown;
  {
    const std::lock_guard hold(lock_);
    way = way_to(row);
  }
  if (way == unknown) way = ask(row);
  return way >= 0;
}

std::int32_t Outbox::way_to(int row) {
  const auto at = static_cast<std::size_t>(row);
  if (at < local_ranks_.size() && !local_ranks_[at]) return through_kernel;
  return at < by_row_.size() ? by_row_[at] : unknown;
}

// Two threads may both ask, and are told the same.
std::int32_t Outbox::ask(int row) {
  shm::Request request{};
  request.kind = shm::RequestKind::neighbour;
  request.peer = row;
  std::int32_t ring = -1;
  if (errand_.run(request, &ring) != PARC_OK) return through_kernel;
  const std::lock_guard hold(lock_);
  const auto at = static_cast<std::size_t>(row);
  if (by_row_.size() <= at) by_row_.resize(at + 1, unknown);
  std::int32_t& way = by_row_[at];
  if (way != unknown) return way;
  way = through_kernel;
  if (ring < 0 || static_cast<std::uint32_t>(ring) >= shm::max_neighbours) return way;
  const shm::ReceiverPlace& there = own_.kernel.to[ring];
  auto made = std::make_unique<Way>();
  {
    const std::lock_guard areas(areas_lock_);
    made->to = areas_.at(there.at);
  }
  if (made->to == nullptr || there.sender >= shm::max_neighbours) return way; // then the ring stays empty
  made->row = row;
  made->ring = static_cast<std::uint32_t>(ring);
  made->place = there.sender;
  way = static_cast<std::int32_t>(ways_.size());
  ways_.push_back(std::move(made));
  return way;
}

Outbox::Sent Outbox::send(int row, const LocalMessage& message) {
  bool rings = false;
  {
    const std::lock_guard hold(lock_);
    Way& way = *ways_[static_cast<std::size_t>(way_to(row))];
    if (own_.kernel.to[way.ring].departed.load(std::memory_order_acquire) != 0) return Sent::departed;
    if (way.sent - way.drained >= worth_a_look) reclaim(way);
    if (free_.empty()) reclaim_all();
    if (free_.empty()) return Sent::no_cell;
    const std::uint32_t cell = free_.back();
    free_.pop_back();
    fill(cell, message);
    shm::publish(own_.owner.rings[way.ring], way.sent++, cell);
    rings = must_ring(way);
  }
  if (rings) {
    shm::Request bell{};
    bell.kind = shm::RequestKind::bell;
    bell.peer = row;
    (void)ring_.push(bell); // where the kernel has gone, so has everybody
  }
  return Sent::published;
}

// One bell for each of its sleeps. As shm/doorbell.hpp says: either it sees what has just been published, or
// this sees that it sleeps.
bool Outbox::must_ring(Way& way) {
  std::atomic_thread_fence(std::memory_order_seq_cst);
  const std::uint32_t sleeps = way.to->owner.sleeps.load(std::memory_order_relaxed);
  if (sleeps % 2 == 0 || way.rung == sleeps) return false;
  way.rung = sleeps;
  return true;
}

void Outbox::fill(std::uint32_t number, const LocalMessage& message) {
  shm::Cell& cell = own_.owner.cells[number];
  cell.tag = message.tag;
  cell.data = message.data;
  cell.length = static_cast<std::uint32_t>(message.length);
  cell.kind = message.kind;
  cell.space = static_cast<std::uint8_t>(message.space);
  cell.with_data = message.with_data ? 1 : 0;
  std::byte* const to = message.length <= shm::cell_bytes ? cell.bytes : own_.owner.bodies[number];
  gather(to, message.pieces, 0, message.length);
}

std::uint32_t Outbox::departure(int row) {
  const std::lock_guard hold(lock_);
  return own_.kernel.to[ways_[static_cast<std::size_t>(way_to(row))]->ring].departed.load(
      std::memory_order_acquire);
}

// The ring still says which cells they were.
void Outbox::reclaim(Way& way) {
  const bool departed = own_.kernel.to[way.ring].departed.load(std::memory_order_acquire) != 0;
  const std::uint64_t drained = way.to->owner.drained[way.place].load(std::memory_order_acquire);
  const std::uint64_t until = departed ? way.sent : std::min(drained, way.sent);
  const auto& entries = own_.owner.rings[way.ring].entries;
  for (; way.drained < until; ++way.drained) {
    const shm::RingEntry entry = entries[way.drained % shm::letterbox_cells].load(std::memory_order_relaxed);
    free_.push_back(entry % shm::letterbox_cells);
  }
}

void Outbox::reclaim_all() {
  for (const auto& way : ways_) reclaim(*way);
}

bool Outbox::any_cell() {
  const std::lock_guard hold(lock_);
  if (free_.empty()) reclaim_all();
  return !free_.empty();
}

void Outbox::wait_for_cells(bool wanted) {
  own_.owner.wants_cells.store(wanted ? 1 : 0, std::memory_order_relaxed);
  std::atomic_thread_fence(std::memory_order_seq_cst);
}

} // namespace parc::client
