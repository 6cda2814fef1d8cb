// SPDX-License-Identifier: BSD-3-Clause
// Where early_stress has its buffers: anywhere in heap, chunks that malloc mapped, bss, data, parc_alloc
// memory and the stack. A place begins and ends in the middle of pages and may be cut into pieces; the bytes
// before, between and behind them are the program's own, and are compared too.
#pragma once

#include "tests/support/programs/rank.hpp"
#include "tests/support/programs/stress/plan.hpp"

#include <algorithm>
#include <array>
#include <cstring>
#include <sys/uio.h>

namespace stress {

enum Kind { arena, bss, data, stack, heap, chunk };
inline constexpr std::array<const char*, 6> kind_names{"arena", "bss", "data", "stack", "heap", "chunk"};

// malloc maps what is larger: said to it, or it would soon take all from the heap.
inline constexpr std::size_t chunk_threshold = 128 * 1024;

struct Place {
  Kind kind;
  unsigned char* base; // of all of it
  std::size_t span;
  std::vector<iovec> pieces;
  std::size_t capacity;   // of the pieces
  unsigned char own;      // the value of the bytes that are in no piece
  int filler = -1;        // of bytes behind a message that is shorter; -1: unknown
  std::size_t status = 0; // where behind the last piece a status has room

  [[nodiscard]] bool from_malloc() const { return kind == heap || kind == chunk; }
  [[nodiscard]] parc_status* status_inside() const { return reinterpret_cast<parc_status*>(base + status); }
  void free_block() const {
    if (from_malloc()) std::free(base);
  }

  // Calls visit(offset in the capacity, memory, bytes) for the pieces' parts of [from, from + bytes).
  template <class Visit> void each_piece(std::size_t from, std::size_t bytes, const Visit& visit) const {
    std::size_t at = 0;
    for (const iovec& piece : pieces) {
      const std::size_t low = std::max(from, at), high = std::min(from + bytes, at + piece.iov_len);
      if (low < high) visit(low, static_cast<unsigned char*>(piece.iov_base) + (low - at), high - low);
      at += piece.iov_len;
    }
  }

  // The bytes that are in no piece.
  template <class Visit> void each_gap(const Visit& visit) const {
    unsigned char* from = base;
    for (const iovec& piece : pieces) {
      auto* const begin = static_cast<unsigned char*>(piece.iov_base);
      if (from < begin) visit(from, begin);
      from = begin + piece.iov_len;
    }
    visit(from, base + span);
  }

  void write_gaps(unsigned char value) {
    own = value;
    each_gap([&](unsigned char* begin, unsigned char* end) { std::fill(begin, end, value); });
  }
};

// A stretch of memory from which places are cut one behind the other.
struct Area {
  unsigned char* base = nullptr;
  std::size_t size = 0, at = 0;
};

// Of one thread. Places of a round lie in one half of each area, those of the next in the other, since some
// are still needed then.
class Places {
public:
  Places(std::uint64_t seed, const std::array<Area, 4>& areas) : random_(seed), areas_(areas) {}

  void start_round(std::uint64_t round) {
    for (std::size_t i = 0; i < areas_.size(); ++i) {
      const std::size_t half = areas_[i].size / 2;
      halves_[i] = {areas_[i].base + round % 2 * half, half, random_.below(half / 4)};
    }
  }

  Place take(std::size_t capacity) {
    const auto count = random_.chance(90) ? 1 : random_.between(1, std::min<std::size_t>(capacity, 20));
    std::vector<std::size_t> gaps; // before each piece
    for (std::uint64_t i = 0; i < count; ++i) gaps.push_back(random_.between(1, 40));
    if (random_.chance(30)) gaps.front() += random_.below(5000);
    std::size_t behind = capacity + 64; // room for a status, and for what is written beside buffers
    for (const std::size_t gap : gaps) behind += gap;
    Place place = block(behind + random_.below(40));
    cut(place, gaps, capacity);
    place.write_gaps(static_cast<unsigned char>(random_.below(256)));
    return place;
  }

private:
  Place block(std::size_t span) {
    Place place{};
    place.kind = static_cast<Kind>(random_.below(5));
    place.span = span;
    if (place.kind < heap) {
      Area& half = halves_[place.kind];
      if (half.at + span <= half.size) {
        place.base = half.base + half.at;
        half.at += span + (random_.chance(50) ? 0 : random_.below(300));
        return place;
      }
    }
    place.kind = span < chunk_threshold && !random_.chance(20) ? heap : chunk;
    if (place.kind == chunk) place.span = std::max(span, chunk_threshold + random_.below(100'000));
    place.base = static_cast<unsigned char*>(std::malloc(place.span));
    rank::expect(place.base != nullptr, "no memory");
    return place;
  }

  void cut(Place& place, const std::vector<std::size_t>& gaps, std::size_t capacity) {
    unsigned char* at = place.base;
    std::size_t left = capacity;
    for (std::size_t i = 0; i < gaps.size(); ++i) {
      const std::size_t pieces_after = gaps.size() - 1 - i;
      const std::size_t length = pieces_after == 0 ? left : random_.between(1, left - pieces_after);
      at += gaps[i];
      place.pieces.push_back({at, length});
      at += length;
      left -= length;
    }
    place.capacity = capacity;
    constexpr std::uintptr_t alignment = alignof(parc_status);
    const auto end = reinterpret_cast<std::uintptr_t>(at);
    place.status =
        (end + alignment - 1) / alignment * alignment - reinterpret_cast<std::uintptr_t>(place.base);
  }

  Random random_;
  const std::array<Area, 4> areas_; // by Kind
  std::array<Area, 4> halves_;
};

} // namespace stress
