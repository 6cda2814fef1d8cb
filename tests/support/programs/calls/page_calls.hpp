// SPDX-License-Identifier: BSD-3-Clause
// Calls that change the pages of a range (their access, bytes, place, whether they stay), or the block that
// its region is. What they must leave follows from what they give: a call that failed has changed nothing.
#pragma once

#include "tests/support/programs/calls/data_calls.hpp"

#include <csetjmp>
#include <utility>

namespace calls {

// ---- Faults of the program's own

inline thread_local sigjmp_buf back;
inline thread_local volatile bool probing = false;
inline void on_fault(int) {
  if (probing) siglongjmp(back, 1);
  constexpr char text[] = "a fault that is nobody's\n";
  (void)!write(STDERR_FILENO, text, sizeof text - 1);
  _exit(rank::status_wrong);
}

inline bool can_be_touched(volatile unsigned char* byte, bool store) {
  const bool can = sigsetjmp(back, 1) == 0;
  if (can) {
    probing = true;
    const unsigned char value = *byte;
    if (store) *byte = value;
  }
  probing = false;
  return can;
}

inline void expect_access(State& at, const Range& pages, bool loads, bool stores) {
  for (std::size_t from : {std::size_t{0}, pages.bytes - 1, at.random.below(pages.bytes)}) {
    if (can_be_touched(pages.memory() + from, false) != loads) wrong("its pages can be read: %d", !loads);
    if (can_be_touched(pages.memory() + from, true) != stores) wrong("its pages can be written: %d", !stores);
  }
}

inline void set_access(State& at, const Range& pages, int access) {
  const bool by_number = at.random.chance(20);
  at.whole(by_number ? syscall(SYS_mprotect, pages.memory(), pages.bytes, access)
                     : mprotect(pages.memory(), pages.bytes, access),
           0);
}

inline void make_read_only(State& at, Range range) {
  const Range pages = range.pages();
  if (pages.bytes == 0) return;
  set_access(at, pages, PROT_READ);
  if (at.random.chance(50)) expect_access(at, pages, true, false);
  at.check(pages, "read-only");
  const Range some = pages.no_more_than(1000);
  if (at.result(pread(at.file, some.memory(), some.bytes, 0)) > 0) wrong("the system wrote read-only pages");
  if (at.random.chance(30)) send_to_oneself(at, pages);
  expect_access(at, pages, true, false);
  set_access(at, pages, PROT_READ | PROT_WRITE);
  expect_access(at, pages, true, true);
}

inline void make_inaccessible(State& at, Range range) {
  const Range pages = range.pages();
  if (pages.bytes == 0) return;
  set_access(at, pages, PROT_NONE);
  expect_access(at, pages, false, false);
  if (at.result(write(at.pipe[1], pages.memory(), 10)) > 0) wrong("the system read pages without access");
  set_access(at, pages, PROT_READ | PROT_WRITE);
  at.check(pages, "accessible again");
}

// ---- Advice

inline int advise(State& at, const Range& pages, int advice) {
  return static_cast<int>(at.result(madvise(pages.memory(), pages.bytes, advice)));
}

// Newer headers have more of them than older ones.
constexpr int advice_cold = 20, advice_page_out = 21, advice_populate_read = 22, advice_populate_write = 23;

inline void advise_anything(State& at, Range range) {
  constexpr int harmless[] = {MADV_NORMAL,          MADV_RANDOM,          MADV_SEQUENTIAL, MADV_WILLNEED,
                              MADV_HUGEPAGE,        MADV_NOHUGEPAGE,      MADV_MERGEABLE,  MADV_UNMERGEABLE,
                              MADV_DONTDUMP,        MADV_DODUMP,          advice_cold,     advice_page_out,
                              advice_populate_read, advice_populate_write};
  const Range pages = range.pages();
  if (pages.bytes == 0) return;
  advise(at, pages, harmless[at.random.below(std::size(harmless))]);
  at.check(range, "after advice");
}

inline void unlock(State& at, Range range) {
  if (!std::exchange(range.region->locked, false)) return;
  at.result(munlock(range.region->base, range.region->size));
  at.check(range, "unlocked");
}

// Of locked pages only those before them would go.
inline int advise_unlocked(State& at, const Range& pages, int advice) {
  unlock(at, pages);
  return advise(at, pages, advice);
}

inline void discard(State& at, Range range) {
  const Range pages = range.pages();
  if (pages.bytes == 0 || !range.region->can_be_discarded()) return;
  if (advise_unlocked(at, pages, MADV_DONTNEED) == 0 && !range.region->shared()) pages.become(0);
  at.check(range, "after it was discarded");
}

inline void remove_bytes(State& at, Range range) {
  const Range pages = range.pages();
  if (pages.bytes == 0 || !range.region->can_be_discarded()) return;
  if (advise_unlocked(at, pages, MADV_REMOVE) == 0) pages.become(0);
  at.check(range, "after its bytes were removed");
}

// Its bytes may go, until they are written to.
inline void free_lazily(State& at, Range range) {
  const Range pages = range.pages();
  if (pages.bytes == 0 || !range.region->can_be_discarded()) return;
  if (advise_unlocked(at, pages, MADV_FREE) == 0) store(at, pages);
  at.check(range, "after it was freed lazily");
}

// What a child has of pages that it is not to have, or not to see.
inline void keep_from_child(State& at, Range range) {
  const Range pages = range.pages();
  if (pages.bytes == 0 || !range.region->can_be_discarded()) return;
  const bool grows = range.region->kind == Kind::stack; // into the hole, in the child
  const bool wiped = at.random.chance(50) || grows;
  if (advise(at, pages, wiped ? MADV_WIPEONFORK : MADV_DONTFORK) != 0) return;
  const pid_t child = fork();
  if (child < 0) wrong("no process");
  if (child == 0) {
    const bool can = can_be_touched(pages.memory(), false);
    _exit(can == wiped && (!wiped || (pages.memory()[0] | pages.memory()[pages.bytes - 1]) == 0) ? 0 : 1);
  }
  wait_for_child(at, child);
  advise(at, pages, wiped ? MADV_KEEPONFORK : MADV_DOFORK);
  at.check(range, "after it was kept from a child");
}

// ---- Places

inline void store_pattern(const Range& range, unsigned char* memory) {
  rank::fill(memory, range.bytes, here.step);
  std::memcpy(range.expected(), memory, range.bytes);
}

// Where the system has made several mappings of the pages it may refuse to move them at once; how many they
// are is its own affair.
inline unsigned char* moved(void* result) {
  if (result == MAP_FAILED && errno == EFAULT) return nullptr;
  if (result == MAP_FAILED) wrong("not moved: %s", std::strerror(errno));
  return static_cast<unsigned char*>(result);
}

inline void map_over(const Range& pages, int flags, int file, off_t offset) {
  void* const there = pages.memory();
  if (mmap(there, pages.bytes, PROT_READ | PROT_WRITE, MAP_FIXED | flags, file, offset) != there)
    wrong("not mapped: %s", std::strerror(errno));
}

inline void move_and_return(State& at, Range range) {
  const Range pages = range.pages();
  if (pages.bytes == 0 || !range.region->can_be_replaced()) return;
  unsigned char* const elsewhere = map(pages.bytes);
  const auto move = [&](void* from, void* to, int flags = 0) {
    return moved(mremap(from, pages.bytes, pages.bytes, MREMAP_MAYMOVE | MREMAP_FIXED | flags, to)) !=
           nullptr;
  };
  const int stays = at.threads ? MREMAP_DONTUNMAP : 0; // another thread's memory would come into the hole
  const bool change = at.random.chance(50);
  if (move(pages.memory(), elsewhere, stays)) {
    compare(pages, elsewhere, "moved away");
    if (change) store_pattern(pages, elsewhere);
    if (!move(elsewhere, pages.memory())) {
      map_over(pages, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
      std::memcpy(pages.memory(), elsewhere, pages.bytes);
      munmap(elsewhere, pages.bytes);
    }
  } else {
    munmap(elsewhere, pages.bytes);
    if (change) store_pattern(pages, pages.memory());
  }
  at.check(range, "moved back");
}

// Empty pages stay.
inline void move_bytes_away(State& at, Range range) {
  const Range pages = range.pages();
  if (pages.bytes == 0 || !range.region->can_be_replaced() || range.region->shared() ||
      !range.region->can_be_discarded())
    return;
  unsigned char* const elsewhere =
      moved(mremap(pages.memory(), pages.bytes, pages.bytes, MREMAP_MAYMOVE | MREMAP_DONTUNMAP, nullptr));
  if (elsewhere != nullptr) {
    compare(pages, elsewhere, "moved away, pages stay");
    munmap(elsewhere, pages.bytes);
  } else {
    map_over(pages, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  }
  pages.become(0);
  at.check(range, "pages that stayed");
}

inline void map_again(State& at, const Range& pages) {
  const Region& region = *pages.region;
  const bool shared = region.kind == Kind::file;
  const auto offset = static_cast<off_t>(pages.memory() - static_cast<unsigned char*>(region.block));
  map_over(pages, shared ? MAP_SHARED : MAP_PRIVATE | MAP_ANONYMOUS, region.file, shared ? offset : 0);
  if (!shared) pages.become(0);
  at.check(pages, "mapped again");
}

inline void unmap_and_map(State& at, Range range) {
  const Range pages = range.pages();
  if (pages.bytes == 0 || !range.region->can_be_replaced()) return;
  // As above: no hole for other threads.
  if (!at.threads && at.random.chance(50)) at.whole(munmap(pages.memory(), pages.bytes), 0);
  map_again(at, pages);
}

inline void map_file_over(State& at, Range range) {
  const Range pages = range.pages();
  if (pages.bytes == 0 || !range.region->can_be_replaced() || range.region->shared()) return;
  at.draw_bytes(pages);
  at.whole(pwrite(at.file, at.scratch, pages.bytes, 0), pages.bytes);
  const bool shared = at.random.chance(50);
  map_over(pages, shared ? MAP_SHARED : MAP_PRIVATE, at.file, 0);
  at.check(pages, "a file in its place");
  map_again(at, pages);
}

// What the file of a shared mapping has.
inline void look_into_file(State& at, Range range) {
  const Region& region = *range.region;
  if (region.kind != Kind::file) return;
  const auto offset = static_cast<off_t>(range.memory() - static_cast<unsigned char*>(region.block));
  at.result(msync(range.pages().memory(), range.pages().bytes, MS_SYNC));
  at.whole(pread(region.file, at.scratch, range.bytes, offset), range.bytes);
  at.check_copy(range, at.scratch, "in the file that is mapped");
}

// ---- Pages that stay

inline void lock(State& at, Range range) {
  at.result(mlock(range.memory(), range.bytes));
  if (at.random.chance(30)) store(at, range.part(at.random));
  at.check(range, "locked");
  if (at.random.chance(80))
    at.result(munlock(range.memory(), range.bytes));
  else
    range.region->locked = true;
}

inline void look_for_pages(State& at, Range range) {
  const Range pages = range.pages();
  if (pages.bytes == 0) return;
  at.result(mincore(pages.memory(), pages.bytes, at.scratch));
  at.check(range, "after mincore");
}

// ---- Blocks

inline constexpr std::size_t largest =
    (4 << 20) + 2 * page; // one region always has room for the longest message
inline std::size_t new_size(State& at, const Region& region) {
  const bool large = at.random.chance(85) ? region.kind == Kind::chunk : region.kind == Kind::heap;
  if (region.size >= largest) return at.random.between(largest, Region::most - 2 * page);
  return large ? at.random.between(chunk_threshold, 2 << 20)
               : at.random.between(40'000, chunk_threshold - 3 * page);
}

// What a block of that size is.
inline void took(State& at, Region& region, void* block, std::size_t size) {
  if (block == nullptr) wrong("no memory");
  region.block = block;
  region.size = size;
  region.kind = region.span() >= chunk_threshold ? Kind::chunk : Kind::heap;
  region.place();
  at.changed(region);
}

inline void resize_block(State& at, Range range) {
  Region& region = *range.region;
  if (region.kind == Kind::anonymous) {
    const std::size_t size = at.random.between(chunk_threshold, 2 << 20), before = region.span(),
                      kept = std::min(size, region.size);
    unsigned char* block = moved(mremap(region.block, before, size + 2 * page, MREMAP_MAYMOVE));
    if (block == nullptr) {
      block = map(size + 2 * page);
      std::memcpy(block + region.skew, region.base, kept);
      munmap(region.block, before);
    }
    region.block = block;
    region.size = size;
    region.place();
    at.changed(region);
    at.check({&region, 0, kept}, "after it was moved and resized");
    return region.fill(static_cast<unsigned char>(at.random.below(256)), kept);
  }
  if (!region.from_malloc()) return;
  const auto offset = static_cast<std::size_t>(region.base - static_cast<unsigned char*>(region.block));
  const std::size_t size = new_size(at, region), kept = std::min(size, region.size);
  void* const block = at.random.chance(70) ? std::realloc(region.block, size + 2 * page)
                                           : reallocarray(region.block, 1, size + 2 * page);
  if (block == nullptr) wrong("no memory");
  const unsigned char* const content = static_cast<unsigned char*>(block) + offset;
  const Range rest{&region, 0, kept};
  at.check_copy(rest, content, "in a block that was resized");
  took(at, region, block, size);
  std::memmove(region.base, content, kept);
  region.fill(static_cast<unsigned char>(at.random.below(256)), kept);
  at.check(rest, "in its place");
}

inline void free_block(State& at, Range range) {
  Region& region = *range.region;
  const std::size_t size = region.kind == Kind::arena ? region.size : new_size(at, region);
  if (region.kind == Kind::arena) {
    parc_free(at.parc, region.block);
    region.block = parc_alloc(at.parc, region.span());
    if (region.block == nullptr) wrong("no memory: %s", parc_error_detail());
    region.place();
  } else if (region.from_malloc()) {
    std::free(region.block);
    took(at, region, at.random.chance(70) ? std::malloc(size + 2 * page) : std::calloc(1, size + 2 * page),
         size);
  } else {
    return;
  }
  region.fill(static_cast<unsigned char>(at.random.below(256)));
}

inline constexpr Call page_calls[] = {
    {"mprotect to read-only", 4, make_read_only},
    {"mprotect to nothing", 3, make_inaccessible},
    {"madvise", 4, advise_anything},
    {"MADV_DONTNEED", 4, discard},
    {"MADV_REMOVE", 2, remove_bytes},
    {"MADV_FREE", 2, free_lazily},
    {"MADV_DONTFORK", 2, keep_from_child},
    {"mremap and back", 4, move_and_return},
    {"mremap, pages stay", 2, move_bytes_away},
    {"munmap and mmap", 3, unmap_and_map},
    {"mmap of a file", 2, map_file_over},
    {"msync", 2, look_into_file},
    {"mlock", 3, lock},
    {"munlock", 2, unlock},
    {"mincore", 1, look_for_pages},
    {"realloc", 4, resize_block},
    {"free", 4, free_block},
};

} // namespace calls
