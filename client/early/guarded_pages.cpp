// SPDX-License-Identifier: BSD-3-Clause
// Pages get the access that the table says: mprotect, under the guards' lock, as is the decision before it.
// That is a barrier for all threads of the process: when it returns no access by the old rights is under way,
// and one by the new rights sees the bytes that its caller knew to be there.
#include "client/base/pages.hpp"
#include "client/early/guards.hpp"
#include "client/early/page_set.hpp"
#include "shm/between.hpp"

#include <algorithm>
#include <cstdlib>
#include <functional>
#include <string_view>
#include <sys/mman.h>
#include <unistd.h>

namespace parc::client {
namespace {

Pages pages_of(const iovec& piece) {
  return pages_around(piece.iov_base, piece.iov_len);
}

int protection_of(Access access) {
  switch (access) {
  case Access::none: return PROT_NONE;
  case Access::loads: return PROT_READ;
  case Access::all: break;
  }
  return PROT_READ | PROT_WRITE;
}

} // namespace

bool Guards::guard_pages(const Guard& guard) {
  return guards_.guard_pages(guard, [&](const GuardTable::Run& run) { return protect(guard.adopted, run); });
}

// False where the system has no room for more mappings: then more of it has to arrive first, and in the end
// all of it is one.
bool Guards::shrink(Guard& guard, const Stretch& missing) {
  return guards_.shrink(guard, missing,
                        [&](const GuardTable::Run& run) { return protect(guard.adopted, run); });
}

// Of a read, what several streams have brought between its ends. Where that is refused it stays shut, as in
// shrink(), and who touches it waits for the counters.
void Guards::open_islands(Guard& guard) {
  if (guard.writes) return;
  guard.refused = false;
  const std::int32_t word = shared(guard.id).error.load(std::memory_order_acquire);
  shm::each_between(word, guard.length, [&](std::uint64_t low, std::uint64_t high) {
    if (!guards_.open_island(guard, {low, high},
                             [&](const GuardTable::Run& run) { return protect(guard.adopted, run); }))
      guard.refused = true;
  });
}

// Writes that overlap may need more mappings for that than the system has room for, and nothing else can give
// the pages back.
void Guards::open_all(Guard& guard) {
  if (guards_.open_pages(guard, [&](const GuardTable::Run& run) { return protect(guard.adopted, run); }))
    return;
  for (std::size_t i = 0; i < guard.pieces; ++i) open_again(guard.adopted, pages_of(guard.piece[i]));
}

void Guards::give_up() {
  constexpr std::string_view text =
      "parc: cannot give guarded pages back: this process is at the system's limit of mappings "
      "(sysctl vm.max_map_count)\n";
  (void)!write(STDERR_FILENO, text.data(), text.size());
  std::abort();
}

// Adopted memory may have been unmapped since, and something else may lie there, which is none of ours.
bool Guards::protect(const Adopted& adopted, const GuardTable::Run& run) {
  const auto set = [&](std::uintptr_t begin, std::uintptr_t end) {
    return page_trace_.each_stretch({begin, end}, [&run](const Pages& pages, bool closed) {
      return mprotect(reinterpret_cast<void*>(pages.begin), pages.end - pages.begin,
                      protection_of(closed ? Access::none : run.access)) == 0;
    });
  };
  ++changes_;
  if (run.access == Access::all) control_.header.waits.openings.fetch_add(1, std::memory_order_relaxed);
  if (!adopted.any()) return set(run.pages.begin, run.pages.end);
  for (std::uintptr_t at = run.pages.begin; at < run.pages.end;) {
    const auto mapping = mappings_.find(at);
    const std::uintptr_t end = mapping ? std::min(mapping->end, run.pages.end) : at + page_size();
    const bool ours =
        mapping && mapping->shared && mapping->device == segments_device_ &&
        (adopted.has_segment(mapping->inode) || arena_.contains(reinterpret_cast<const void*>(at), 1));
    if (ours && !set(at, end)) return false;
    at = end;
  }
  return true;
}

bool Guards::protect_all(const Adopted& adopted, const Pages& pages) {
  return guards_.each_run(pages, [&](const GuardTable::Run& run) { return protect(adopted, run); });
}

// Where the system has no room for more mappings, whole stretches need fewer.
void Guards::open_again(const Adopted& adopted, const Pages& pages) {
  if (protect_all(adopted, pages)) return;
  page_trace_.open({0, UINTPTR_MAX}, [this](const Adopted& other, const Pages& stretch) {
    if (!protect_all(other, stretch)) give_up();
  });
  if (!protect_all(adopted, pages)) give_up();
}

// Of a read that has ended, or that has its guard: its pages stay closed until they are touched.
void Guards::close_untouched(const Guard& guard) {
  if (!page_trace_.on() || guard.writes || is_protected(guard)) return;
  Guard whole = guard;
  whole.missing = {0, guard.length};
  whole.islands = {};
  if (holds_signal_stack(whole) || holds_this_stack(whole) ||
      exposed_.has_any_of(operations_.entry(guard.slot).pieces))
    return;
  for (std::size_t i = 0; i < guard.pieces; ++i) overwrite_untouched(pages_of(guard.piece[i]));
  if (!page_trace_.add(guard)) return;
  bool closed = true;
  for (std::size_t i = 0; i < guard.pieces; ++i)
    closed = closed && protect_all(guard.adopted, pages_of(guard.piece[i]));
  if (!closed) // too many mappings, say
    for (std::size_t i = 0; i < guard.pieces; ++i) open_untouched(pages_of(guard.piece[i]));
  count();
}

void Guards::open_untouched(const Pages& pages) {
  page_trace_.open(pages, std::bind_front(&Guards::open_again, this));
  count();
}

void Guards::overwrite_untouched(const Pages& pages) {
  page_trace_.overwrite(pages, std::bind_front(&Guards::open_again, this));
  count();
}

void Guards::use_untouched(const Pages& pages) {
  page_trace_.use(pages, Trace::site(), std::bind_front(&Guards::open_again, this));
  count();
}

bool Guards::touch_untouched(const PageTrace::Touch& touch) {
  const bool was = page_trace_.touch(touch, std::bind_front(&Guards::open_again, this));
  count();
  return was;
}

void Guards::count() {
  count_.store(guards_.size() + static_cast<std::size_t>(!page_trace_.empty()), std::memory_order_relaxed);
}

// By the program: it would find them open afterwards.
bool Guards::is_protected(const Guard& guard) {
  return std::any_of(guard.piece.begin(), guard.piece.begin() + guard.pieces, [](const iovec& piece) {
    const Pages pages = pages_of(piece);
    return protected_pages.overlaps(pages.begin, pages.end);
  });
}

// A coroutine's, say: its next fault would find no place for its signal.
bool Guards::holds_this_stack(const Guard& guard) const {
  const std::uintptr_t here = address_of(__builtin_frame_address(0));
  return guards_.needs(guard, {here, here + 1});
}

// A signal that comes on the alternate stack must find it there.
bool Guards::holds_signal_stack(const Guard& guard) const {
  stack_t stack{};
  if (sigaltstack(nullptr, &stack) != 0 || (stack.ss_flags & SS_DISABLE) != 0) return false;
  const std::uintptr_t begin = address_of(stack.ss_sp);
  return guards_.needs(guard, {begin, begin + stack.ss_size});
}

} // namespace parc::client
