// SPDX-License-Identifier: BSD-3-Clause
// Pages get the access that the table says: mprotect, under the guards' lock, as is the decision before it.
// That is a barrier for all threads of the process: when it returns no access by the old rights is under way,
// and one by the new rights sees the bytes that its caller knew to be there.
#include "client/base/pages.hpp"
#include "client/early/guards.hpp"
#include "client/early/page_set.hpp"

#include <algorithm>
#include <cstdlib>
#include <string_view>
#include <sys/mman.h>
#include <unistd.h>

namespace parc::client {
namespace {

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
  return guards_.guard_pages(guard, [&](const GuardTable::Run& run) { return protect(guard, run); });
}

// False where the system has no room for more mappings: then more of it has to arrive first, and in the end
// all of it is one.
bool Guards::shrink(Guard& guard, const Stretch& missing) {
  return guards_.shrink(guard, missing, [&](const GuardTable::Run& run) { return protect(guard, run); });
}

// Writes that overlap may need more mappings for that than the system has room for, and nothing else can give
// the pages back.
void Guards::open_all(Guard& guard) {
  if (guards_.open_pages(guard, [&](const GuardTable::Run& run) { return protect(guard, run); })) return;
  constexpr std::string_view text =
      "parc: cannot give guarded pages back: this process is at the system's limit of mappings "
      "(sysctl vm.max_map_count)\n";
  (void)!write(STDERR_FILENO, text.data(), text.size());
  std::abort();
}

// Adopted memory may have been unmapped since, and something else may lie there, which is none of ours.
bool Guards::protect(const Guard& guard, const GuardTable::Run& run) {
  const auto set = [&run](std::uintptr_t begin, std::uintptr_t end) {
    return mprotect(reinterpret_cast<void*>(begin), end - begin, protection_of(run.access)) == 0;
  };
  ++changes_;
  if (run.access == Access::all) control_.header.waits.openings.fetch_add(1, std::memory_order_relaxed);
  if (!guard.adopted.any()) return set(run.pages.begin, run.pages.end);
  for (std::uintptr_t at = run.pages.begin; at < run.pages.end;) {
    const auto mapping = mappings_.find(at);
    const std::uintptr_t end = mapping ? std::min(mapping->end, run.pages.end) : at + page_size();
    const bool ours =
        mapping && mapping->shared && mapping->device == segments_device_ &&
        (guard.adopted.has_segment(mapping->inode) || arena_.contains(reinterpret_cast<const void*>(at), 1));
    if (ours && !set(at, end)) return false;
    at = end;
  }
  return true;
}

// By the program: it would find them open afterwards.
bool Guards::is_protected(const Guard& guard) {
  return std::any_of(guard.piece.begin(), guard.piece.begin() + guard.pieces, [](const iovec& piece) {
    const std::uintptr_t begin = address_of(piece.iov_base);
    return protected_pages.overlaps(round_down(begin, page_size()),
                                    round_up(begin + piece.iov_len, page_size()));
  });
}

// A signal that comes on the alternate stack must find it there.
bool Guards::holds_signal_stack(const Guard& guard) const {
  stack_t stack{};
  if (sigaltstack(nullptr, &stack) != 0 || (stack.ss_flags & SS_DISABLE) != 0) return false;
  const std::uintptr_t begin = address_of(stack.ss_sp);
  return guards_.needs(guard, {begin, begin + stack.ss_size});
}

} // namespace parc::client
