// SPDX-License-Identifier: BSD-3-Clause
// Which pages released operations leave without full access. The table holds, for each of them, the stretch
// of its message that is missing; the access of a page is the strictest that any of them leaves it, which is
// what the paper (erMPI 2005, section 2.3) has counts per page for. An order that a program has promised
// changes nothing here: who breaks it would see stale bytes if the next page alone were guarded, as HUNT
// 2005, section 5.2, has it, and all of 4 MiB cost 26 us, not 2, of the 35 ms in which they come at 1 Gbit/s.
//
// Pure: it makes no system call, takes no lock and, from its construction on, no memory. What changes pages
// gives each run of them, and the access that all guards leave it, to `apply`, which may refuse. Invariant:
// as long as apply has not refused, every page has the access that access_of() says; when it has, no page
// that a guard needs has more.
#pragma once

#include "client/base/own_memory.hpp"
#include "client/base/pages.hpp"
#include "client/early/adoption.hpp"
#include "client/operation/operations.hpp"

#include <algorithm>
#include <array>
#include <cstddef>
#include <iterator>
#include <optional>
#include <utility>
#include <vector>

namespace parc::client {

struct Stretch { // of a message's bytes
  std::uint64_t low, high;
  [[nodiscard]] bool empty() const { return low >= high; }
};
// Some of them that have come although what is before and behind them has not: ascending, apart.
class Islands {
public:
  [[nodiscard]] std::size_t size() const { return static_cast<std::size_t>(count_); }
  [[nodiscard]] bool full() const { return count_ == std::ssize(islands_); }
  [[nodiscard]] auto begin() const { return islands_.begin(); }
  [[nodiscard]] auto end() const { return islands_.begin() + count_; }
  [[nodiscard]] Stretch without(Stretch bytes) const; // of which both ends are no island's
  bool add(const Stretch& island);                    // false: there is no room for one more
  void keep_within(const Stretch& missing);           // the others are forgotten

private:
  std::array<Stretch, 16> islands_{}; // as many as the kernel can tell of (shm/between.hpp)
  std::ptrdiff_t count_ = 0;
};
struct Pages { // of addresses, whole or not
  std::uintptr_t begin, end;
  [[nodiscard]] bool empty() const { return begin >= end; }
  [[nodiscard]] bool overlaps(const Pages& other) const { return begin < other.end && other.begin < end; }
};
inline Pages pages_around(const void* memory, std::size_t bytes) {
  const std::uintptr_t begin = address_of(memory);
  return {round_down(begin, page_size()), round_up(begin + bytes, page_size())};
}
enum class Access : std::uint8_t { none, loads, all };
// Until what a touch waits: strips.hpp.
enum class Grain : std::uint8_t { strips, whole, train };

struct Guard {
  static constexpr std::size_t most_pieces = 16;
  parc_op id;
  bool writes;
  Stretch missing; // of the message, as far as its pages are guarded, without the islands: it only shrinks
  Islands islands;
  bool refused; // some island was, at the last look: who touches a page waits for the counters alone
  std::uint32_t pieces;
  std::array<iovec, most_pieces> piece;
  // Nothing that the table looks at.
  Slot slot;
  Order order;
  bool gets; // what comes, and how much, is known from the start, and it has not begun before it ends
  bool from_end;
  Grain grain;
  std::uint64_t started; // of a get, when
  parc_envelope envelope;
  std::uint64_t length;
  Adopted adopted; // memory that can go, and be something else
  bool reporting;  // its loss; whoever faults on it meanwhile waits
  bool handing;    // a write over; the same
  // Of a read: since when, until when some of it was seen to be missing, and how long calls and touches have
  // waited for it.
  Clock::time_point released, missed;
  Clock::duration waited;
  // When the last wait for it ended, and how many bytes were missing then.
  Clock::time_point came;
  std::uint64_t left;
};

class GuardTable {
public:
  struct Run { // pages of one access
    Pages pages;
    Access access;
  };

  // Each island of a guard may need two mappings more, of which the system has so many for a process.
  GuardTable(std::size_t most, std::uintptr_t page_size, std::size_t most_islands = SIZE_MAX)
      : page_size_(page_size), most_islands_(most_islands) {
    guards_.reserve(most);
  }

  [[nodiscard]] std::size_t size() const { return guards_.size(); }
  [[nodiscard]] bool full() const { return guards_.size() == guards_.capacity(); }
  [[nodiscard]] auto begin() { return guards_.begin(); }
  [[nodiscard]] auto end() { return guards_.end(); }
  [[nodiscard]] auto begin() const { return guards_.begin(); }
  [[nodiscard]] auto end() const { return guards_.end(); }
  [[nodiscard]] Guard& operator[](std::size_t index) { return guards_[index]; }
  [[nodiscard]] Guard* find(parc_op id);

  // It is not full. The guard's pages are not guarded before guard_pages().
  Guard& add(const Guard& guard);
  // Its place goes to the last one. Its pages must have been opened.
  void remove(Guard& guard);

  template <class Apply> [[nodiscard]] bool guard_pages(const Guard& guard, const Apply& apply) const {
    return each_piece(guard,
                      [&](std::size_t i) { return each_run(pages_of(guard, i, guard.missing), apply); });
  }
  // That is not missing: an island. False, and it is not opened: apply refused, or there are too many of
  // them.
  template <class Apply> [[nodiscard]] bool open_island(Guard& guard, Stretch island, const Apply& apply);
  // No more than `missing` is: the pages of what has arrived since are opened. False: where apply refused,
  // the guard has what it had, and some of its pages may be open that it does not need any more.
  template <class Apply> [[nodiscard]] bool shrink(Guard& guard, const Stretch& missing, const Apply& apply);
  // Nothing is missing. False: apply refused.
  template <class Apply> [[nodiscard]] bool open_pages(Guard& guard, const Apply& apply) {
    const Stretch was = std::exchange(guard.missing, {0, 0});
    keep_islands_within(guard, {0, 0});
    return each_piece(guard, [&](std::size_t i) { return each_run(pages_of(guard, i, was), apply); });
  }

  // A page's.
  [[nodiscard]] Access access_of(std::uintptr_t page) const {
    return run_from({page, page + page_size_}).access;
  }
  // It needs a page that lies there.
  [[nodiscard]] bool needs(const Guard& guard, const Pages& there) const;
  // No page that `missing` lies on has bytes of others beside those of one piece.
  [[nodiscard]] bool on_whole_pages(const Guard& guard, const Stretch& missing) const;
  // The missing bytes of the message that lie in there, those of one piece.
  [[nodiscard]] static std::optional<Stretch> missing_in(const Guard& guard, const Pages& there);

  // What all guards leave of these pages, run by run.
  template <class Apply> bool each_run(Pages pages, const Apply& apply) const {
    while (!pages.empty()) {
      const Run run = run_from(pages);
      if (!apply(run)) return false;
      pages.begin = run.pages.end;
    }
    return true;
  }

private:
  // The stretches of its message that a guard misses.
  template <class Use> static void each_gap(const Guard& guard, const Use& use) {
    std::uint64_t low = guard.missing.low;
    for (const Stretch& island : guard.islands) {
      if (low < island.low) use(Stretch{low, island.low});
      low = island.high;
    }
    if (low < guard.missing.high) use(Stretch{low, guard.missing.high});
  }
  template <class Use> static bool each_piece(const Guard& guard, const Use& use) {
    for (std::size_t i = 0; i < guard.pieces; ++i)
      if (!use(i)) return false;
    return true;
  }
  void keep_islands_within(Guard& guard, const Stretch& missing) {
    islands_ -= guard.islands.size();
    guard.islands.keep_within(missing);
    islands_ += guard.islands.size();
  }
  void give_islands_back(Guard& guard, const Islands& before) {
    islands_ += before.size() - guard.islands.size(); // modulo 2^64
    guard.islands = before;
  }
  [[nodiscard]] Run run_from(const Pages& pages) const; // the first one of them
  [[nodiscard]] static Pages addresses_of(const Guard& guard, std::size_t piece, const Stretch& bytes);
  [[nodiscard]] Pages pages_of(const Guard& guard, std::size_t piece, const Stretch& bytes) const;

  std::uintptr_t page_size_;
  std::size_t most_islands_, islands_ = 0;      // of all guards
  std::vector<Guard, OwnMemory<Guard>> guards_; // never grows past its first capacity
};

template <class Apply> bool GuardTable::shrink(Guard& guard, const Stretch& missing, const Apply& apply) {
  const Stretch before = guard.missing;
  guard.missing =
      guard.islands.without({std::max(before.low, missing.low), std::min(before.high, missing.high)});
  if (guard.missing.low == before.low && guard.missing.high == before.high) return true;
  const Islands islands = guard.islands;
  keep_islands_within(guard, guard.missing);
  const bool applied = each_piece(guard, [&](std::size_t i) {
    const Pages old = pages_of(guard, i, before), now = pages_of(guard, i, guard.missing);
    const Pages left = now.empty() ? Pages{old.end, old.end} : now;
    return each_run({old.begin, std::min(old.end, left.begin)}, apply) &&
           each_run({std::max(old.begin, left.end), old.end}, apply);
  });
  if (applied) return true;
  guard.missing = before;
  give_islands_back(guard, islands);
  return false;
}

template <class Apply> bool GuardTable::open_island(Guard& guard, Stretch island, const Apply& apply) {
  const Stretch missing = guard.missing;
  island = guard.islands.without({std::max(island.low, missing.low), std::min(island.high, missing.high)});
  if (island.empty()) return true;
  const Islands before = guard.islands;
  if (!guard.islands.add(island)) return false;
  islands_ += guard.islands.size() - before.size(); // modulo 2^64: it may join others
  const bool has_room = guard.islands.size() <= before.size() || islands_ <= most_islands_;
  const bool applied = has_room && each_piece(guard, [&](std::size_t i) {
                         return each_run(pages_of(guard, i, island), apply);
                       });
  if (!applied) give_islands_back(guard, before);
  return applied;
}

} // namespace parc::client
