// SPDX-License-Identifier: BSD-3-Clause
// Any buffer, in place. Pages of the program's own memory are copied into a segment that is then attached
// over the same addresses: from there on the kernel moves data straight into them, as with parc_alloc.
//
// Two files: adoption.cpp adopts, and giving_back.cpp makes adopted pages private again, where something else
// needs the place, where the program changes them, and in forked children.
//
// Adopted is private anonymous memory of glibc's malloc (the brk heap, and chunks that it mapped) and the
// executable's data and bss. Everything else, and memory of another allocator, which may rely on
// MADV_DONTNEED giving zeros, is bounced.
//
// Invariants. An extent is never trusted from memory: before every use the system is asked whether the
// segment is still attached there, page range by page range (free, munmap, realloc and brk can take it away
// at any time). Of a chunk that malloc mapped the first page never lies in one mapping with what is adopted
// behind it, so that mremap, which would extend that past the end of its segment, refuses and realloc copies;
// where the first page is adopted, too, it has a segment of its own, of which there is more than was
// attached, as realloc may cut the chunk down to that page and let it grow again. Nobody's store is lost: the
// pages are read-only while they are copied, and a store waits in the fault's handler. A forked child gets
// private copies before its parent goes on.
//
// Memory that is exposed as it is (a window that is not parc_alloc's) is neither adopted nor given back: the
// kernel stores there meanwhile, through the system.
//
// Segments are few. While there are enough, an extent is what its buffer's pages need and no more (but a
// chunk that is hardly longer is adopted whole): what lies beside them may be another's, which a device just
// reads into, and may be most of the memory. Beyond that neighbours get one together, and
// the one that was used the longest ago goes: its pages get memory of their own again, as they had before. An
// extent that an operation of the kernel uses stays in the table even when the program's memory there has
// gone, as it does in the kernel's, so that the arena finds the places that are its own.
//
// One for the process, as its memory is; it outlives contexts. Threads: any.
#pragma once

#include "client/early/hooks.hpp"
#include "client/early/mappings.hpp"
#include "client/early/page_set.hpp"
#include "client/memory/adopted.hpp"
#include "client/operation/control_calls.hpp"
#include "shm/segment.hpp"

#include <array>
#include <atomic>
#include <mutex>
#include <sys/single_threaded.h>

namespace parc::client {

class Guards;

class Adoption final : public AdoptedMemory {
public:
  // No other thread of the program can be freeing memory. A test, whose kernel is a thread, answers for
  // itself.
  static inline bool (*alone)() = [] { return static_cast<bool>(__libc_single_threaded); };

  // The session whose kernel is to know the extents; it knows none yet. None: there is no session.
  void serve(ControlCalls* control_calls, Guards* guards, const shm::Segment* control);

  // All of it may be named in requests, from here until its use ends. Where it cannot yet and
  // `may_adopt`, it is made so if that is possible, which waits for the kernel.
  [[nodiscard]] bool use(const void* memory, std::size_t bytes, bool may_adopt, Adopted& adopted);
  // An adoption that another thread has begun is over.
  void let_finish() { const std::lock_guard hold(lock_); }
  void drop_freed() override;
  bool give_back_one() override;

  // Some of it is adopted.
  [[nodiscard]] bool overlaps(std::uintptr_t begin, std::uintptr_t end);
  // As EarlyHooks::before_change, when nothing is missing there any more. `of_arena`: it is parc_alloc's.
  [[nodiscard]] bool change(std::uintptr_t begin, std::uintptr_t end, PageChange how, bool of_arena);

  // For pthread_atfork.
  void before_fork();
  void after_fork_in_parent();
  void after_fork_in_child();

private:
  void end_uses(const Adopted& adopted) override;
  struct Extent {
    std::uintptr_t begin = 0, end = 0; // 0, 0: free
    int id = -1;                       // of the segment
    bool known = false;                // to the kernel
    bool gone = false;                 // what was there is not any more; in the table until its last use ends
    std::uintptr_t chunk = 0; // of which it is the first page, or what follows that: both go together
    std::uint64_t last = 0;   // of uses_so_far_
    [[nodiscard]] bool free() const { return begin == end; }
    [[nodiscard]] bool overlaps(std::uintptr_t from, std::uintptr_t to) const {
      return !gone && begin < to && from < end;
    }
  };
  struct Range {
    std::uintptr_t begin, end;
    std::uintptr_t chunk = 0; // that malloc mapped and of which this is a part
  };

  [[nodiscard]] bool adopt(std::uintptr_t begin, std::uintptr_t end);
  [[nodiscard]] bool contains(std::uintptr_t begin, std::uintptr_t end);
  [[nodiscard]] std::size_t index_of(const Extent& extent) const;
  [[nodiscard]] bool in_use(const Extent& extent) const;
  [[nodiscard]] Extent* find(std::uintptr_t address);
  [[nodiscard]] bool is_ours(const Mapping& mapping, const Extent& extent) const;
  [[nodiscard]] std::uintptr_t grain() const;
  [[nodiscard]] std::optional<Range> adoptable(std::uintptr_t address, std::uintptr_t end);
  [[nodiscard]] Range around(const Mapping& mapping);
  [[nodiscard]] std::optional<Range> mapped_chunk(const Mapping& mapping, std::uintptr_t address,
                                                  std::uintptr_t end);
  enum class Unless : std::uint8_t { never, used };
  [[nodiscard]] bool retreat(std::uintptr_t begin, std::uintptr_t end, Unless unless);
  [[nodiscard]] static bool holds_a_stack(std::uintptr_t begin, std::uintptr_t end);
  [[nodiscard]] Range without_extents(Range range, std::uintptr_t address) const;
  enum class Kind : std::uint8_t { whole, front }; // front: of a chunk
  [[nodiscard]] bool make_extent(std::uintptr_t begin, std::uintptr_t end, Kind kind, std::uintptr_t chunk);
  [[nodiscard]] bool has_extents() const;
  [[nodiscard]] bool is_exposed(std::uintptr_t begin, std::uintptr_t end) const;
  [[nodiscard]] bool tell_kernel(Extent& extent);
  void tell_kernel_gone(Extent& extent);
  void drop_stale();
  [[nodiscard]] bool make_places(std::ptrdiff_t count);
  [[nodiscard]] Extent* oldest_unused(std::uint64_t before);
  [[nodiscard]] bool give_back(Extent& extent);
  [[nodiscard]] bool make_good(Extent& extent, std::uintptr_t begin, std::uintptr_t end);
  [[nodiscard]] bool is_ours(const Mapping& mapping) const;
  enum class How : std::uint8_t { alone, beside_others }; // this thread
  template <class Exchange> [[nodiscard]] bool make_private(std::uintptr_t begin, std::uintptr_t end, How how,
                                                            const Exchange& exchange);
  [[nodiscard]] static bool exchange_for_private(std::uintptr_t begin, std::uintptr_t end, const Mapping& was,
                                                 How how);
  template <class Exchange> [[nodiscard]] bool exchange_pages(const Exchange& exchange);
  [[nodiscard]] std::uintptr_t end_of(const Extent& extent);
  [[nodiscard]] bool lies_in(const Extent& extent, std::uintptr_t begin, std::uintptr_t end);
  [[nodiscard]] bool holds_ours(std::uintptr_t begin, std::uintptr_t end);

  std::mutex lock_;
  std::array<Extent, Adopted::most> extents_; // under lock_, as everything else but uses_
  // Operations of each extent; grows under lock_.
  std::array<std::atomic<std::uint32_t>, Adopted::most> uses_{};
  std::uint64_t uses_so_far_ = 0;
  Mappings mappings_;
  std::array<Range, 4> no_chunks_{}; // mappings in which none was found, in turn
  std::size_t next_no_chunk_ = 0;
  PageSet pinned_; // by the program: neither adopted nor given back
  ControlCalls* control_calls_ = nullptr;
  Guards* guards_ = nullptr;
  std::optional<std::uint64_t> device_; // that segments are on
  std::array<int, 2> fork_pipe_{-1, -1};
};

} // namespace parc::client
