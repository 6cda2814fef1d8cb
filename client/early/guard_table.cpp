// SPDX-License-Identifier: BSD-3-Clause
#include "client/early/guard_table.hpp"

#include <cassert>

namespace parc::client {

Stretch Islands::without(Stretch bytes) const {
  for (const Stretch& island : *this)
    if (island.low <= bytes.low && bytes.low < island.high) bytes.low = island.high;
  for (const Stretch& island : *this)
    if (island.low < bytes.high && bytes.high <= island.high) bytes.high = island.low;
  return bytes;
}

// Those that it touches become one with it.
bool Islands::add(const Stretch& island) {
  const auto behind = islands_.begin() + count_;
  const auto first =
      std::find_if(islands_.begin(), behind, [&](const Stretch& each) { return each.high >= island.low; });
  const auto last = std::find_if(first, behind, [&](const Stretch& each) { return each.low > island.high; });
  if (first == last) {
    if (full()) return false;
    std::move_backward(first, behind, behind + 1);
    *first = island;
    ++count_;
    return true;
  }
  *first = {std::min(first->low, island.low), std::max((last - 1)->high, island.high)};
  count_ = std::move(last, behind, first + 1) - islands_.begin();
  return true;
}

void Islands::keep_within(const Stretch& missing) {
  const auto behind = islands_.begin() + count_;
  for (auto each = islands_.begin(); each != behind; ++each)
    *each = {std::max(each->low, missing.low), std::min(each->high, missing.high)};
  count_ = std::remove_if(islands_.begin(), behind, [](const Stretch& each) { return each.empty(); }) -
           islands_.begin();
}

Guard* GuardTable::find(parc_op id) {
  const auto found = std::ranges::find(guards_, id, &Guard::id);
  return found == guards_.end() ? nullptr : &*found;
}

Guard& GuardTable::add(const Guard& guard) {
  assert(!full() && guard.pieces <= Guard::most_pieces);
  guards_.push_back(guard);
  return guards_.back();
}

void GuardTable::remove(Guard& guard) {
  assert(guard.missing.empty());
  guard = guards_.back();
  guards_.pop_back();
}

GuardTable::Run GuardTable::run_from(const Pages& pages) const {
  Run run{pages, Access::all};
  for (const Guard& guard : guards_)
    for (std::size_t i = 0; i < guard.pieces; ++i)
      each_gap(guard, [&](const Stretch& gap) {
        const Pages guarded = pages_of(guard, i, gap);
        if (!guarded.overlaps(run.pages)) return;
        if (guarded.begin > pages.begin) {
          run.pages.end = guarded.begin;
          return;
        }
        run.pages.end = std::min(run.pages.end, guarded.end);
        run.access = std::min(run.access, guard.writes ? Access::loads : Access::none);
      });
  return run;
}

bool GuardTable::needs(const Guard& guard, const Pages& there) const {
  bool needed = false;
  for (std::size_t i = 0; i < guard.pieces; ++i)
    each_gap(guard, [&](const Stretch& gap) { needed = needed || pages_of(guard, i, gap).overlaps(there); });
  return needed;
}

bool GuardTable::on_whole_pages(const Guard& guard, const Stretch& missing) const {
  return each_piece(guard, [&](std::size_t i) {
    const Pages pages = pages_of(guard, i, missing);
    const std::uintptr_t begin = address_of(guard.piece[i].iov_base);
    return pages.empty() || (begin <= pages.begin && pages.end <= begin + guard.piece[i].iov_len);
  });
}

// Where those bytes of the message lie in a piece; {0, 0} where it has none of them.
Pages GuardTable::addresses_of(const Guard& guard, std::size_t piece, const Stretch& bytes) {
  std::uint64_t base = 0;
  for (std::size_t i = 0; i < piece; ++i) base += guard.piece[i].iov_len;
  const std::uint64_t low = std::max(bytes.low, base);
  const std::uint64_t high = std::min<std::uint64_t>(bytes.high, base + guard.piece[piece].iov_len);
  if (low >= high) return {0, 0};
  const std::uintptr_t address = address_of(guard.piece[piece].iov_base);
  return {address + (low - base), address + (high - base)};
}

Pages GuardTable::pages_of(const Guard& guard, std::size_t piece, const Stretch& bytes) const {
  const Pages place = addresses_of(guard, piece, bytes);
  return {round_down(place.begin, page_size_), round_up(place.end, page_size_)};
}

std::optional<Stretch> GuardTable::missing_in(const Guard& guard, const Pages& there) {
  std::optional<Stretch> found;
  std::uint64_t base = 0;
  for (std::size_t i = 0; i < guard.pieces && !found; base += guard.piece[i++].iov_len)
    each_gap(guard, [&](const Stretch& gap) {
      const Pages place = addresses_of(guard, i, gap);
      const std::uintptr_t low = std::max(place.begin, there.begin), high = std::min(place.end, there.end);
      const std::uint64_t to_message = base - address_of(guard.piece[i].iov_base); // modulo 2^64
      if (low < high && !found) found = Stretch{low + to_message, high + to_message};
    });
  return found;
}

} // namespace parc::client
