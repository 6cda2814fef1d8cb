// SPDX-License-Identifier: BSD-3-Clause
// The memory of one message: pieces that follow each other, addressed by offset within the message. Owns no
// bytes.
#pragma once

#include <algorithm>
#include <boost/container/small_vector.hpp>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>

namespace parc::protocol {

struct Piece {
  std::byte* base;
  std::uint64_t length;
};

class Pieces {
public:
  Pieces() = default;
  Pieces(std::byte* base, std::uint64_t length) { append({base, length}); }
  explicit Pieces(std::span<const Piece> pieces) {
    for (const Piece& piece : pieces) append(piece);
  }

  [[nodiscard]] std::uint64_t size() const { return parts_.empty() ? 0 : parts_.back().end; }
  [[nodiscard]] std::size_t count() const { return parts_.size(); }

  void append(Piece piece) {
    if (piece.length != 0) parts_.push_back({piece.base, size() + piece.length});
  }

  // Calls use(base, length) for each stretch of memory behind [offset, offset + length), in order.
  template <class Use> void each(std::uint64_t offset, std::uint64_t length, Use use) const {
    auto part = std::upper_bound(parts_.begin(), parts_.end(), offset,
                                 [](std::uint64_t at, const Part& p) { return at < p.end; });
    for (; length != 0 && part != parts_.end(); ++part) {
      const std::uint64_t start = part == parts_.begin() ? 0 : std::prev(part)->end;
      const std::uint64_t n = std::min(length, part->end - offset);
      use(part->base + (offset - start), n);
      offset += n;
      length -= n;
    }
  }

  // A program may read into the memory that it writes from.
  void copy_in(std::uint64_t offset, const std::byte* from, std::uint64_t length) const {
    each(offset, length, [&](std::byte* base, std::uint64_t n) {
      std::memmove(base, from, n);
      from += n;
    });
  }
  void copy_out(std::uint64_t offset, std::byte* to, std::uint64_t length) const {
    each(offset, length, [&](const std::byte* base, std::uint64_t n) {
      std::memcpy(to, base, n);
      to += n;
    });
  }

  // From here on [begin, begin + length) lies at `base`.
  void replace(std::uint64_t begin, std::byte* base, std::uint64_t length) {
    Pieces changed;
    each(0, begin, [&](std::byte* b, std::uint64_t n) { changed.append({b, n}); });
    changed.append({base, length});
    const std::uint64_t end = begin + length;
    if (end < size()) each(end, size() - end, [&](std::byte* b, std::uint64_t n) { changed.append({b, n}); });
    *this = std::move(changed);
  }

private:
  struct Part {
    std::byte* base;
    std::uint64_t end; // offset within the message behind this part
  };
  boost::container::small_vector<Part, 1> parts_;
};

// Copies between two messages' memories.
inline void copy(const Pieces& to, const Pieces& from, std::uint64_t offset, std::uint64_t length) {
  from.each(offset, length, [&](const std::byte* base, std::uint64_t n) {
    to.copy_in(offset, base, n);
    offset += n;
  });
}

} // namespace parc::protocol
