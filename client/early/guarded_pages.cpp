// SPDX-License-Identifier: BSD-3-Clause
// Which pages a guard needs, and mprotect. All of it under the guards' lock.
#include "client/early/guards.hpp"
#include "client/pages.hpp"

#include <algorithm>
#include <cstdlib>
#include <string_view>
#include <sys/mman.h>
#include <unistd.h>

namespace parc::client {

// Its pages lose what has arrived since. False where the system has no room for more mappings: then more of
// it has to arrive first, and in the end all of it is one.
bool Guards::shrink(Guard& guard, const Stretch& missing) {
  const Stretch before = guard.missing;
  guard.missing = {std::max(before.low, missing.low), std::min(before.high, missing.high)};
  if (guard.missing.low == before.low && guard.missing.high == before.high) return true;
  const Stretch was = guarded_of(guard, before), is = guarded_of(guard, guard.missing);
  for (std::size_t i = 0; i < guard.pieces; ++i) {
    const Pages old = pages_of(guard, i, was);
    const Pages now = pages_of(guard, i, is);
    // The next page first, where only that is guarded.
    const bool moved = guard.order == Order::any || set_access(guard, now);
    const Pages left = now.begin == now.end ? Pages{old.end, old.end} : now;
    if (moved && set_access(guard, Pages{old.begin, std::min(old.end, left.begin)}) &&
        set_access(guard, Pages{std::max(old.begin, left.end), old.end}))
      continue;
    guard.missing = before;
    return false;
  }
  return true;
}

// Writes that overlap may need more mappings for that than the system has room for, and nothing else can give
// the pages back.
void Guards::open_all(Guard& guard) {
  const Stretch was = guarded_of(guard, std::exchange(guard.missing, {0, 0}));
  for (std::size_t i = 0; i < guard.pieces; ++i)
    if (!set_access(guard, pages_of(guard, i, was))) {
      constexpr std::string_view text =
          "parc: cannot give guarded pages back: this process is at the system's limit of mappings "
          "(sysctl vm.max_map_count)\n";
      (void)!write(STDERR_FILENO, text.data(), text.size());
      std::abort();
    }
}

// Gives pages, those of that guard among others', the access that all guards leave them.
bool Guards::set_access(const Guard& guard, Pages pages) {
  while (pages.begin < pages.end) {
    const Run run = run_from(pages.begin, pages.end);
    if (!set_access(guard, run)) return false;
    pages.begin = run.end;
  }
  return true;
}

// Adopted memory may have been unmapped since, and something else may lie there, which is none of ours.
bool Guards::set_access(const Guard& guard, const Run& run) {
  const auto protect = [&run](std::uintptr_t begin, std::uintptr_t end) {
    return mprotect(reinterpret_cast<void*>(begin), end - begin, run.access) == 0;
  };
  ++changes_;
  if (run.access == (PROT_READ | PROT_WRITE)) openings_.fetch_add(1, std::memory_order_relaxed);
  if (!guard.adopted.any()) return protect(run.begin, run.end);
  for (std::uintptr_t at = run.begin; at < run.end;) {
    const auto mapping = mappings_.find(at);
    const std::uintptr_t end = mapping ? std::min(mapping->end, run.end) : at + page_size();
    const bool ours =
        mapping && mapping->shared && mapping->device == segments_device_ &&
        (guard.adopted.has_segment(mapping->inode) || arena_.contains(reinterpret_cast<const void*>(at), 1));
    if (ours && !protect(at, end)) return false;
    at = end;
  }
  return true;
}

Guards::Run Guards::run_from(std::uintptr_t from, std::uintptr_t end) const {
  Run run{from, end, PROT_READ | PROT_WRITE};
  for (const Guard& guard : guards_)
    for (std::size_t i = 0; i < guard.pieces; ++i) {
      const Pages pages = pages_of(guard, i, guarded_of(guard, guard.missing));
      if (pages.end <= from || pages.begin >= run.end) continue;
      if (pages.begin > from) {
        run.end = pages.begin;
        continue;
      }
      run.end = std::min(run.end, pages.end);
      run.access &= guard.writes ? PROT_READ : PROT_NONE;
    }
  return run;
}

// A signal that comes on the alternate stack must find it there.
bool Guards::holds_signal_stack(const Guard& guard) {
  stack_t stack{};
  if (sigaltstack(nullptr, &stack) != 0 || (stack.ss_flags & SS_DISABLE) != 0) return false;
  const std::uintptr_t begin = address_of(stack.ss_sp), end = begin + stack.ss_size;
  for (std::size_t i = 0; i < guard.pieces; ++i) {
    const Pages pages = pages_of(guard, i, guarded_of(guard, guard.missing));
    if (pages.begin < end && begin < pages.end) return true;
  }
  return false;
}

// Whose pages are guarded of what is missing: under an order those of the page that is touched next.
Guards::Stretch Guards::guarded_of(const Guard& guard, const Stretch& missing) {
  if (guard.writes || guard.order == Order::any || missing.empty()) return missing;
  const bool up = guard.order == Order::up;
  const std::uint64_t next = up ? missing.low : missing.high - 1;
  std::uint64_t base = 0;
  std::size_t piece = 0;
  for (; base + guard.piece[piece].iov_len <= next; ++piece) base += guard.piece[piece].iov_len;
  const std::uintptr_t start = address_of(guard.piece[piece].iov_base), address = start + (next - base);
  if (up)
    return {next, std::min({missing.high, base + guard.piece[piece].iov_len,
                            next + (round_up(address + 1, page_size()) - address)})};
  const std::uintptr_t lowest = std::max(round_down(address, page_size()), start);
  return {std::max(missing.low, next - (address - lowest)), missing.high};
}

// Where those bytes of the message lie in a piece; {0, 0} where it has none of them.
Guards::Pages Guards::place_of(const Guard& guard, std::size_t piece, const Stretch& bytes) {
  std::uint64_t base = 0;
  for (std::size_t i = 0; i < piece; ++i) base += guard.piece[i].iov_len;
  const std::uint64_t low = std::max(bytes.low, base);
  const std::uint64_t high = std::min<std::uint64_t>(bytes.high, base + guard.piece[piece].iov_len);
  if (low >= high) return {0, 0};
  const std::uintptr_t address = address_of(guard.piece[piece].iov_base);
  return {address + (low - base), address + (high - base)};
}

Guards::Pages Guards::pages_of(const Guard& guard, std::size_t piece, const Stretch& bytes) {
  const Pages place = place_of(guard, piece, bytes);
  return {round_down(place.begin, page_size()), round_up(place.end, page_size())};
}

// The missing bytes of the message that lie in there, those of one piece.
std::optional<Guards::Stretch> Guards::missing_in(const Guard& guard, const Pages& there) {
  std::uint64_t base = 0;
  for (std::size_t i = 0; i < guard.pieces; base += guard.piece[i++].iov_len) {
    const Pages place = place_of(guard, i, guard.missing);
    const std::uintptr_t low = std::max(place.begin, there.begin), high = std::min(place.end, there.end);
    const std::uint64_t to_message = base - address_of(guard.piece[i].iov_base); // modulo 2^64
    if (low < high) return Stretch{low + to_message, high + to_message};
  }
  return {};
}

} // namespace parc::client
