// SPDX-License-Identifier: BSD-3-Clause
// Any buffer, in place. Pages of the program's own memory are copied into a segment that is then attached
// over the same addresses: from there on the kernel moves data straight into them, as with parc_alloc.
//
// Adopted is private anonymous memory of glibc's malloc (the brk heap, and chunks that it mapped) and the
// executable's data and bss. Everything else, and memory of another allocator, which may rely on
// MADV_DONTNEED giving zeros, is bounced.
//
// Invariants. An extent is never trusted from memory: before every use the system is asked whether the
// segment is still attached there, page range by page range (free, munmap, realloc and brk can take it away
// at any time). A chunk that malloc mapped has two segments, so that mremap, which would extend one past its
// end, refuses and realloc copies; where realloc has cut it down to the first one alone, there is more of
// that segment than was attached. Nobody's store is lost: the pages are read-only while they are copied, and
// a store waits in the fault's handler. A forked child gets private copies before its parent goes on.
//
// One for the process, as its memory is; it outlives contexts. Threads: any.
#pragma once

#include "client/early/mappings.hpp"
#include "client/errand.hpp"
#include "shm/segment.hpp"

#include <array>
#include <mutex>

namespace parc::client {

class Guards;

class Adoption {
public:
  // The session whose kernel is to know the extents; it knows none yet. None: there is no session.
  void serve(Errand* errand, Guards* guards, const shm::Segment* control);

  // All of it may be named in requests.
  [[nodiscard]] bool contains(const void* memory, std::size_t bytes);
  // Makes it so where that is possible. Waits for the kernel.
  [[nodiscard]] bool adopt(const void* memory, std::size_t bytes);

  // For pthread_atfork.
  void before_fork();
  void after_fork_in_parent();
  void after_fork_in_child();

private:
  struct Extent {
    std::uintptr_t begin = 0, end = 0; // 0, 0: free
    int id = -1;                       // of the segment
    bool known = false;                // to the kernel
  };
  struct Range {
    std::uintptr_t begin, end;
    bool chunk; // that malloc mapped
  };
  static constexpr std::size_t most_extents = 20; // the arena needs segments too

  [[nodiscard]] bool contains_locked(std::uintptr_t begin, std::uintptr_t end);
  [[nodiscard]] Extent* find(std::uintptr_t address);
  [[nodiscard]] bool is_ours(const Mapping& mapping, const Extent& extent) const;
  [[nodiscard]] std::optional<Range> adoptable(std::uintptr_t address, std::uintptr_t end);
  [[nodiscard]] static std::optional<Range> mapped_chunk(const Mapping& mapping, std::uintptr_t address,
                                                         std::uintptr_t end);
  [[nodiscard]] static bool holds_a_stack(const Range& range);
  [[nodiscard]] Range without_extents(Range range, std::uintptr_t address) const;
  enum class Kind : std::uint8_t { whole, front }; // front: of a chunk
  [[nodiscard]] bool make_extent(std::uintptr_t begin, std::uintptr_t end, Kind kind = Kind::whole);
  [[nodiscard]] bool has_extents() const;
  [[nodiscard]] bool tell_kernel(Extent& extent);
  void take_back(Extent& extent);
  void drop_stale();

  std::mutex lock_;
  std::array<Extent, most_extents> extents_; // under lock_, as everything else
  Mappings mappings_;
  Errand* errand_ = nullptr;
  Guards* guards_ = nullptr;
  std::optional<std::uint64_t> device_; // that segments are on
  std::array<int, 2> fork_pipe_{-1, -1};
};

} // namespace parc::client
