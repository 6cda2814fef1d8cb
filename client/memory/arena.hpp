// SPDX-License-Identifier: BSD-3-Clause
// Memory that the kernel has mapped too: what parc_alloc gives, and what bounces and copies live in. It grows
// by segments, each told to the kernel before its first byte is given out, and shrinks by whole segments that
// nobody uses: when a further one must be made, and what is more than a reserve when nobody has used it for a
// second. Small blocks are pieces of slabs (slab.hpp).
//
// Invariants: a block given out lies in a segment that the kernel has attached and that stays until the block
// is freed. contains() needs no lock: an extent is one atomic word, and it is only taken away while no block
// of it is out, so that nobody has an address in it to ask about. Threads: any. Not async-signal-safe, except
// contains().
#pragma once

#include "client/base/slab.hpp"
#include "client/memory/adopted.hpp"
#include "client/session/kernel_calls.hpp"
#include "shm/segment.hpp"
#include "system/error.hpp"

#include <array>
#include <boost/interprocess/mem_algo/rbtree_best_fit.hpp>
#include <boost/interprocess/sync/mutex_family.hpp>
#include <memory>
#include <mutex>
#include <sys/single_threaded.h>
#include <vector>

namespace parc::client {

class Arena {
public:
  Arena(KernelCalls& kernel, AdoptedMemory& adopted) : kernel_(kernel), adopted_(adopted) {}

  // 64-byte aligned, whole pages from one page up. Waits for the kernel when it needs another segment, never
  // for another operation.
  [[nodiscard]] Result<void*> allocate(std::size_t bytes);

  // The same where it may be had without another segment; nullptr otherwise.
  [[nodiscard]] void* allocate_from_what_is_there(std::size_t bytes);

  // The same in a signal handler, of what is no small block; nullptr also where another has the lock.
  [[nodiscard]] void* allocate_without_waiting(std::size_t bytes);

  // nullptr is ignored.
  void free(void* block);
  // False: the lock is another's, or of whoever a signal handler has interrupted.
  [[nodiscard]] bool free_without_waiting(void* block);
  // Bytes of its segments.
  [[nodiscard]] std::size_t size();

  // A small block that is at hand, and its way back: what malloc costs, and inline for that. nullptr, false:
  // allocate, free.
  [[nodiscard]] void* take_piece(std::size_t bytes) {
    if (bytes > Slab::largest) return nullptr;
    Slab*& slab = slabs_[Slab::kind_for(bytes)];
    const Alone alone(lock_);
    return slab != nullptr ? take_from(slab) : nullptr;
  }
  [[nodiscard]] bool give_piece(const void* piece) {
    const Alone alone(lock_);
    Slab* const slab = slab_of(piece);
    if (slab != nullptr) give_to(*slab, piece);
    return slab != nullptr;
  }

  // Of a block that was given out; 0 for anything else.
  [[nodiscard]] std::size_t size_of(void* block);

  // Keeps the segment of an address of a block until unpin, even when the block is freed: the kernel may name
  // it still.
  void pin(const void* address);
  void unpin(const void* address);

  // Called now and then: gives back what has been left unused. May wait for the kernel.
  void look() {
    if (left_since_.load(std::memory_order_relaxed) != 0) give_back_left();
  }

  // All of [address, address + bytes) may be named in requests.
  [[nodiscard]] bool contains(const void* address, std::size_t bytes) const;

private:
  // Its bookkeeping lies in the segment itself; the lock is ours.
  using Heap = boost::interprocess::rbtree_best_fit<boost::interprocess::null_mutex_family>;
  using Slabs = std::vector<std::unique_ptr<Slab>, OwnMemory<std::unique_ptr<Slab>>>;

  struct Room {
    shm::Segment segment;
    Heap* heap = nullptr;
    std::size_t blocks = 0; // given out, slabs, and pins
    Slabs slabs;            // by the stretch of addresses that they lie in
  };
  // Where a segment lies, in units of 4 KiB: its beginning above, its length in the low 24 bits. 0: nowhere.
  using Extent = std::atomic<std::uint64_t>;
  static constexpr unsigned unit_bits = 12, length_bits = 24;
  struct Span {
    std::uintptr_t begin, length;
  };
  [[nodiscard]] Span span_of(std::size_t place) const {
    const auto word = extents_[place].load(std::memory_order_acquire);
    return {word >> length_bits << unit_bits, (word & ((1u << length_bits) - 1)) << unit_bits};
  }

  // The lock, where there is another thread to keep out: taking it costs more than what is done under it.
  // Held over nothing that could start a thread.
  class Alone {
  public:
    explicit Alone(std::mutex& lock) : lock_(__libc_single_threaded ? nullptr : &lock) {
      if (lock_ != nullptr) lock_->lock();
    }
    Alone(const Alone&) = delete;
    Alone& operator=(const Alone&) = delete;
    ~Alone() {
      if (lock_ != nullptr) lock_->unlock();
    }

  private:
    std::mutex* const lock_;
  };

  // What follows is done under lock_.
  [[nodiscard]] static void* take_from(Slab*& slab) {
    void* const piece = slab->take();
    if (slab->exhausted()) slab = slab->next;
    return piece;
  }
  void give_to(Slab& slab, const void* piece) {
    if (slab.exhausted()) slab.next = std::exchange(slabs_[slab.kind()], &slab);
    slab.give(piece);
  }
  [[nodiscard]] std::unique_ptr<Slab>& slab_slot(Room& room, const void* address) {
    return room.slabs[address_of(address) / Slab::stretch - address_of(room.segment.data()) / Slab::stretch];
  }
  [[nodiscard]] Slab* slab_of(const void* address) {
    Room* const room = room_of(address);
    return room != nullptr ? slab_slot(*room, address).get() : nullptr;
  }
  [[nodiscard]] Room* room_of(const void* address) {
    for (std::size_t place = 0; place < rooms_.size(); ++place)
      if (const Span span = span_of(place); address_of(address) - span.begin < span.length)
        return &rooms_[place];
    return nullptr;
  }
  void give(void* block);
  [[nodiscard]] bool make_slab(std::size_t kind);
  [[nodiscard]] bool drop_unused_slabs();
  [[nodiscard]] static std::uint64_t extent_of(const shm::Segment& segment);
  [[nodiscard]] void* take(std::size_t bytes);
  [[nodiscard]] Result<void> grow(std::size_t bytes);
  [[nodiscard]] Result<void> grow_from_what_is_left(std::size_t bytes);
  [[nodiscard]] Result<shm::Segment> create_segment(std::size_t wanted, std::size_t least);
  [[nodiscard]] Result<void> move_in(std::size_t place, shm::Segment segment);
  void use(Room& room);
  void unuse(Room& room);
  void give_back_unused(std::size_t enough);
  void give_back_left();

  KernelCalls& kernel_;
  AdoptedMemory& adopted_;
  std::mutex lock_;
  std::array<Slab*, Slab::kinds> slabs_{}; // under lock_: those with a free piece, by their kind
  std::size_t most_ = 0;                   // under lock_: bytes of all segments at one time
  std::size_t unused_ = 0;                 // under lock_: bytes of segments of which no block is out
  // Changes under lock_: coarse_ms() when a segment was left and more than the reserve was unused; 0: it is
  // not.
  std::atomic<std::uint32_t> left_since_ = 0;
  std::array<Room, shm::max_segments> rooms_;     // under lock_
  std::array<Extent, shm::max_segments> extents_; // of rooms_, for contains()
};

} // namespace parc::client
