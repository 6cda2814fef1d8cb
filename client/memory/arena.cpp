// SPDX-License-Identifier: BSD-3-Clause
#include "client/memory/arena.hpp"

#include "client/base/pages.hpp"
#include "parc/parc.h"
#include "system/coarse_clock.hpp"

#include <algorithm>
#include <new>

namespace parc::client {
namespace {

constexpr std::size_t first_segment = std::size_t{4} << 20;
constexpr std::size_t largest_segment = std::size_t{32} << 30;
constexpr std::size_t reserve = std::size_t{32} << 20; // of unused segments, which nobody takes away
constexpr std::uint32_t giving_back_ms = 1000;

std::size_t alignment_of(std::size_t bytes) {
  return bytes < page_size() ? Slab::line : page_size();
}

// A segment in which a block of that many bytes has room beside the heap's own bookkeeping.
std::size_t segment_for(std::size_t bytes) {
  return round_up(bytes, page_size()) + 4 * page_size();
}

} // namespace

Result<void*> Arena::allocate(std::size_t bytes) {
  if (bytes > shm::max_message)
    return error(PARC_ENOMEM, "cannot allocate {} bytes: a block may have {}", bytes, shm::max_message);
  const std::lock_guard hold(lock_);
  if (void* block = take(bytes)) return block;
  if (drop_unused_slabs())
    if (void* block = take(bytes)) return block;
  // Small blocks have a segment of their own before a large one is made, which they would keep.
  const bool none = std::ranges::none_of(rooms_, [](const Room& room) { return room.heap != nullptr; });
  if (none && bytes > first_segment) {
    PARC_TRY(grow(1));
  }
  PARC_TRY(grow(bytes));
  return take(bytes);
}

void* Arena::allocate_from_what_is_there(std::size_t bytes) {
  const std::lock_guard hold(lock_);
  return take(bytes);
}

// Slabs may need memory of malloc.
void* Arena::allocate_without_waiting(std::size_t bytes) {
  const std::unique_lock hold(lock_, std::try_to_lock);
  return hold ? take(std::max(bytes, Slab::largest + 1)) : nullptr;
}

// Where there is no room for another slab, what is left is used up piece by piece.
void* Arena::take(std::size_t bytes) {
  if (bytes <= Slab::largest)
    if (Slab*& slab = slabs_[Slab::kind_for(bytes)]; slab != nullptr || make_slab(Slab::kind_for(bytes)))
      return take_from(slab);
  const std::size_t alignment = alignment_of(bytes);
  const std::size_t whole = round_up(std::max<std::size_t>(bytes, 1), alignment);
  for (auto& room : rooms_) {
    if (!room.heap) continue;
    if (void* block = room.heap->allocate_aligned(whole, alignment)) {
      use(room);
      return block;
    }
  }
  return nullptr;
}

void Arena::free(void* block) {
  if (!block) return;
  const std::lock_guard hold(lock_);
  give(block);
}

bool Arena::free_without_waiting(void* block) {
  const std::unique_lock hold(lock_, std::try_to_lock);
  if (hold) give(block);
  return hold.owns_lock();
}

void Arena::give(void* block) {
  if (Slab* const slab = slab_of(block)) return give_to(*slab, block);
  if (Room* const room = room_of(block)) {
    room->heap->deallocate(block);
    unuse(*room);
  }
}

std::size_t Arena::size() {
  const std::lock_guard hold(lock_);
  std::size_t bytes = 0;
  for (const Room& room : rooms_) bytes += room.heap ? room.segment.size() : 0;
  return bytes;
}

std::size_t Arena::size_of(void* block) {
  const std::lock_guard hold(lock_);
  if (const Slab* const slab = slab_of(block)) return slab->kind() * Slab::line;
  Room* const room = room_of(block);
  return room ? room->heap->size(block) : 0;
}

void Arena::pin(const void* address) {
  const std::lock_guard hold(lock_);
  if (Room* const room = room_of(address)) use(*room);
}

void Arena::unpin(const void* address) {
  const std::lock_guard hold(lock_);
  if (Room* const room = room_of(address)) unuse(*room);
}

bool Arena::make_slab(std::size_t kind) {
  for (auto& room : rooms_) {
    if (!room.heap) continue;
    void* const begin = room.heap->allocate_aligned(Slab::bytes, Slab::stretch);
    if (begin == nullptr) continue;
    auto& slab = slab_slot(room, begin);
    try {
      slab = std::make_unique<Slab>(begin, kind);
    } catch (const std::bad_alloc&) {
      room.heap->deallocate(begin);
      throw;
    }
    use(room);
    slabs_[kind] = slab.get();
    return true;
  }
  return false;
}

// True: there is more room than before.
bool Arena::drop_unused_slabs() {
  bool any = false;
  for (Slab*& first : slabs_)
    for (Slab** slab = &first; *slab != nullptr;) {
      if (!(*slab)->unused()) {
        slab = &(*slab)->next;
        continue;
      }
      void* const begin = (*slab)->begin();
      *slab = (*slab)->next;
      Room& room = *room_of(begin);
      slab_slot(room, begin).reset();
      room.heap->deallocate(begin);
      unuse(room);
      any = true;
    }
  return any;
}

bool Arena::contains(const void* address, std::size_t bytes) const {
  for (std::size_t place = 0; place < extents_.size(); ++place) {
    const auto [begin, length] = span_of(place);
    const auto offset = address_of(address) - begin;
    if (offset < length) return bytes <= length - offset;
  }
  return false;
}

std::uint64_t Arena::extent_of(const shm::Segment& segment) {
  static_assert((largest_segment + shm::max_message) >> unit_bits < std::uint64_t{1} << length_bits);
  const auto begin = reinterpret_cast<std::uintptr_t>(segment.data());
  return begin >> unit_bits << length_bits | segment.size() >> unit_bits;
}

// Under lock_. Adopted memory gives way before a call fails.
Result<void> Arena::grow(std::size_t bytes) {
  for (;;) {
    auto grown = grow_from_what_is_left(bytes);
    if (grown || !adopted_.give_back_one()) return grown;
  }
}

// Each segment is as large as all before it, and large where there was much, so that a few are enough for any
// program.
Result<void> Arena::grow_from_what_is_left(std::size_t bytes) {
  std::size_t total = 0;
  for (const auto& room : rooms_) total += room.segment.size();
  most_ = std::max(most_, total);
  give_back_unused(0);
  const auto free_room = std::find_if(rooms_.begin(), rooms_.end(), [](const Room& r) { return !r.heap; });
  if (free_room == rooms_.end())
    return error(
        PARC_ENOMEM,
        "cannot allocate {} bytes: all {} segments of this program are in use; allocate fewer, larger "
        "blocks",
        bytes, rooms_.size());
  const std::size_t least = segment_for(bytes);
  const std::size_t wanted =
      std::max(least, std::clamp(std::max(total, most_ / 2), first_segment, largest_segment));
  PARC_TRY(segment, create_segment(wanted, least));
  return move_in(static_cast<std::size_t>(free_room - rooms_.begin()), std::move(segment));
}

Result<shm::Segment> Arena::create_segment(std::size_t wanted, std::size_t least) {
  auto segment = shm::Segment::create(wanted);
  if (!segment && wanted > least) segment = shm::Segment::create(least);
  if (!segment) segment.error().code = PARC_ENOMEM;
  return segment;
}

// The kernel attaches first; only then may a request name an address in it.
Result<void> Arena::move_in(std::size_t place, shm::Segment segment) {
  shm::Request map{};
  map.kind = shm::RequestKind::map;
  map.address = reinterpret_cast<std::uintptr_t>(segment.data());
  map.length = segment.size();
  map.attached.segment = static_cast<std::uint64_t>(segment.id());
  adopted_.drop_freed();
  if (const int answer = kernel_.run(map); answer != PARC_OK)
    return error(answer, "the kernel cannot map another {} bytes of this program's memory: {}",
                 segment.size(), parc_error_string(answer));
  auto& room = rooms_[place];
  room.segment = std::move(segment);
  room.slabs = Slabs(room.segment.size() / Slab::stretch + 2);
  room.heap = new (room.segment.data()) Heap(room.segment.size(), 0);
  unused_ += room.segment.size();
  extents_[place].store(extent_of(room.segment), std::memory_order_release);
  return success();
}

void Arena::use(Room& room) {
  if (room.blocks++ != 0) return;
  unused_ -= room.segment.size();
  if (unused_ <= reserve) left_since_.store(0, std::memory_order_relaxed);
}

void Arena::unuse(Room& room) {
  if (--room.blocks != 0) return;
  unused_ += room.segment.size();
  if (unused_ > reserve) left_since_.store(std::max(coarse_ms(), 1U), std::memory_order_relaxed);
}

// A message that comes again and again finds its segment; one that came once does not hold it for ever.
void Arena::give_back_left() {
  const auto left_for = [this] { return coarse_ms() - left_since_.load(std::memory_order_relaxed); };
  if (left_for() < giving_back_ms) return;
  const std::lock_guard hold(lock_);
  if (left_since_.load(std::memory_order_relaxed) == 0 || left_for() < giving_back_ms) return;
  (void)drop_unused_slabs();
  give_back_unused(reserve);
  left_since_.store(0, std::memory_order_relaxed); // also of what the kernel keeps
  most_ = 0;
}

// Under lock_. The latest first, which are the largest, as long as more than that is unused; not the first
// where that is small: small blocks come again. What the kernel
// does not let go stays here too.
void Arena::give_back_unused(std::size_t enough) {
  for (std::size_t place = rooms_.size(); place-- > 0 && unused_ > enough;) {
    auto& room = rooms_[place];
    if (!room.heap || room.blocks != 0 || (place == 0 && room.segment.size() <= first_segment)) continue;
    shm::Request unmap{};
    unmap.kind = shm::RequestKind::unmap;
    unmap.address = reinterpret_cast<std::uintptr_t>(room.segment.data());
    unmap.length = room.segment.size();
    const auto extent = extents_[place].exchange(0, std::memory_order_acq_rel);
    if (kernel_.run(unmap) == PARC_OK) {
      unused_ -= room.segment.size();
      room = Room();
    } else {
      extents_[place].store(extent, std::memory_order_release);
    }
  }
}

} // namespace parc::client
