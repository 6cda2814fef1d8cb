// SPDX-License-Identifier: BSD-3-Clause
// Memory that the kernel has mapped too: what parc_alloc gives, and what bounces and copies live in. It grows
// by segments, each told to the kernel before its first byte is given out, and shrinks by whole segments that
// nobody uses, when a further one must be made.
//
// Invariants: a block given out lies in a segment that the kernel has attached and that stays until the block
// is freed. contains() needs no lock: an extent is one atomic word, and it is only taken away while no block
// of it is out, so that nobody has an address in it to ask about. Threads: any. Not async-signal-safe, except
// contains().
#pragma once

#include "client/early/adoption.hpp"
#include "shm/segment.hpp"
#include "system/error.hpp"

#include <array>
#include <boost/interprocess/mem_algo/rbtree_best_fit.hpp>
#include <boost/interprocess/sync/mutex_family.hpp>
#include <mutex>

namespace parc::client {

class Arena {
public:
  Arena(Errand& errand, Adoption& adoption) : errand_(errand), adoption_(adoption) {}

  // 64-byte aligned, whole pages from one page up. Waits for the kernel when it needs another segment, never
  // for another operation.
  [[nodiscard]] Result<void*> allocate(std::size_t bytes);

  // The same where it may be had without another segment; nullptr otherwise.
  [[nodiscard]] void* allocate_from_what_is_there(std::size_t bytes);

  // nullptr is ignored.
  void free(void* block);

  // Of a block that was given out; 0 for anything else.
  [[nodiscard]] std::size_t size_of(void* block);

  // Keeps the segment of an address of a block until unpin, even when the block is freed: the kernel may name
  // it still.
  void pin(const void* address);
  void unpin(const void* address);

  // All of [address, address + bytes) may be named in requests.
  [[nodiscard]] bool contains(const void* address, std::size_t bytes) const;

private:
  // Its bookkeeping lies in the segment itself; the lock is ours.
  using Heap = boost::interprocess::rbtree_best_fit<boost::interprocess::null_mutex_family>;

  struct Room {
    shm::Segment segment;
    Heap* heap = nullptr;
    std::size_t blocks = 0; // given out, and pins
  };
  // Where a segment lies, in units of 4 KiB: its beginning above, its length in the low 24 bits. 0: nowhere.
  using Extent = std::atomic<std::uint64_t>;

  [[nodiscard]] static std::uint64_t extent_of(const shm::Segment& segment);
  [[nodiscard]] Room* room_of(const void* address);
  [[nodiscard]] void* take(std::size_t bytes);
  [[nodiscard]] Result<void> grow(std::size_t bytes);
  [[nodiscard]] Result<void> grow_from_what_is_left(std::size_t bytes);
  [[nodiscard]] Result<shm::Segment> create_segment(std::size_t wanted, std::size_t least);
  [[nodiscard]] Result<void> move_in(std::size_t place, shm::Segment segment);
  void give_back_unused();

  Errand& errand_;
  Adoption& adoption_;
  std::mutex lock_;
  std::size_t most_ = 0;                          // under lock_: bytes of all segments at one time
  std::array<Room, shm::max_segments> rooms_;     // under lock_
  std::array<Extent, shm::max_segments> extents_; // of rooms_, for contains()
};

} // namespace parc::client
