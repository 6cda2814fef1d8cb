// SPDX-License-Identifier: BSD-3-Clause
// The memory of one message: pieces that follow each other, addressed by offset within the message. Owns no
// bytes.
//
// Some may be memory of another process (CrossMemory), which has no address here: only copy(), gather() and
// scatter() reach it. Of a message to or from another host that is a window's alone.
#pragma once

#include <algorithm>
#include <boost/container/small_vector.hpp>
#include <cassert>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>

namespace parc::protocol {

struct Atomic;

// What has become of an atomic operation that another process makes.
enum class Operated : std::uint8_t {
  not_yet,
  made,
  no_word, // none is there that may be stored into
};

// Memory of another process, by its own addresses. Where it cannot be reached from here its process copies it
// itself, which takes a while. That is asked for, under a name, by calls that have one; the same call is made
// again until it returns true. One copy is under way at a time.
class CrossMemory {
public:
  static constexpr std::uint64_t no_name = 0;
  static constexpr std::size_t most_asked = std::size_t{64} << 10; // bytes of a copy with a name

  virtual ~CrossMemory() = default;
  // False: it is not copied; without a name: nor will it be.
  [[nodiscard]] virtual bool read(std::byte* to, const std::byte* from, std::uint64_t length,
                                  std::uint64_t name) = 0;
  [[nodiscard]] virtual bool write(std::byte* to, const std::byte* from, std::uint64_t length,
                                   std::uint64_t name) = 0;
  // An atomic operation, which its process alone can make: asked for as a copy is, until it is over.
  // `before`: what was there, where it is made.
  [[nodiscard]] virtual Operated operate(std::byte* word, const Atomic& atomic, std::uint64_t name,
                                         std::uint64_t& before) = 0;
  // A copy of another name is under way.
  [[nodiscard]] virtual bool busy(std::uint64_t name) const = 0;
  // Rows of it, each `stride` behind the one before, which lie together here: as read and write without a
  // name.
  [[nodiscard]] virtual bool read_rows(std::byte* to, const std::byte* first, std::uint64_t row,
                                       std::int64_t stride, std::uint64_t count);
  [[nodiscard]] virtual bool write_rows(std::byte* first, const std::byte* from, std::uint64_t row,
                                        std::int64_t stride, std::uint64_t count);
  // Its process ends: what was not reached lately was there.
  [[nodiscard]] virtual bool ends() const { return false; }
  // Nobody waits for this copy any more, if it was asked for: its memory may go.
  virtual void forget(std::uint64_t name) = 0;
};

struct Piece {
  std::byte* base;
  std::uint64_t length;
  CrossMemory* of = nullptr; // whose; none: it is here
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
  [[nodiscard]] bool is_here() const { // none of it is of another process
    return std::ranges::none_of(parts_, [](const Part& part) { return part.of != nullptr; });
  }

  void append(Piece piece) {
    if (piece.length != 0) parts_.push_back({piece.base, size() + piece.length, piece.of, 0, 0});
  }
  // So many rows as long as that piece, which is the first of them, each `stride` behind the one before it.
  void append_rows(Piece first, std::uint64_t count, std::int64_t stride) {
    if (count == 1) return append(first);
    if (first.length != 0 && count != 0)
      parts_.push_back({first.base, size() + count * first.length, first.of, first.length, stride});
  }
  [[nodiscard]] bool has_rows_elsewhere() const { // of another process
    return std::ranges::any_of(parts_, [](const Part& part) { return part.row != 0 && part.of != nullptr; });
  }
  // Some of it is scattered in short rows: sooner gathered elsewhere than given to the system piece by piece.
  [[nodiscard]] bool has_short_rows() const {
    return std::ranges::any_of(parts_,
                               [](const Part& part) { return part.row != 0 && part.row < short_row; });
  }

  [[nodiscard]] bool ends() const { // a process that some of it is of
    return std::ranges::any_of(parts_,
                               [](const Part& part) { return part.of != nullptr && part.of->ends(); });
  }

  // Calls use(base, length) for each stretch of memory behind [offset, offset + length), in order. All of it
  // is here.
  template <class Use> void each(std::uint64_t offset, std::uint64_t length, Use use) const {
    each_piece(offset, length, [&](const Piece& piece) {
      assert(piece.of == nullptr);
      use(piece.base, piece.length);
    });
  }
  // The same of any memory: use(piece).
  template <class Use> void each_piece(std::uint64_t offset, std::uint64_t length, Use use) const {
    each_run(offset, length, [&](Piece piece, std::int64_t stride, std::uint64_t count) {
      for (; count != 0; --count) {
        use(piece);
        if (count != 1) piece.base += stride;
      }
    });
  }
  // The same, rows of one part together: use(first piece, stride, how many).
  template <class Use> void each_run(std::uint64_t offset, std::uint64_t length, Use use) const {
    auto part = std::upper_bound(parts_.begin(), parts_.end(), offset,
                                 [](std::uint64_t at, const Part& p) { return at < p.end; });
    for (; length != 0 && part != parts_.end(); ++part) {
      const std::uint64_t start = part == parts_.begin() ? 0 : std::prev(part)->end;
      const std::uint64_t n = std::min(length, part->end - offset);
      if (part->row == 0)
        use(Piece{part->base + (offset - start), n, part->of}, 0, 1);
      else
        each_run_of(*part, offset - start, n, use);
      offset += n;
      length -= n;
    }
  }

  // The piece that byte lies in, and the offset of its first one. It is not of rows.
  [[nodiscard]] Piece part_at(std::uint64_t offset, std::uint64_t& start) const {
    const auto part = std::upper_bound(parts_.begin(), parts_.end(), offset,
                                       [](std::uint64_t at, const Part& p) { return at < p.end; });
    assert(part != parts_.end() && part->row == 0);
    start = part == parts_.begin() ? 0 : std::prev(part)->end;
    return {part->base, part->end - start, part->of};
  }

  // Calls use(memory) for each other process that some of it is of.
  template <class Use> void each_other(Use use) const {
    for (const Part& part : parts_)
      if (part.of != nullptr) use(*part.of);
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
    const auto append = [&](const Piece& piece) { changed.append(piece); };
    each_piece(0, begin, append);
    changed.append({base, length});
    const std::uint64_t end = begin + length;
    if (end < size()) each_piece(end, size() - end, append);
    *this = std::move(changed);
  }

private:
  static constexpr std::uint64_t short_row = 1024;

  struct Part {
    std::byte* base;
    std::uint64_t end; // offset within the message behind this part
    CrossMemory* of;
    std::uint64_t row; // 0: its bytes lie together
    std::int64_t stride;
  };
  // The end of a row, whole rows, and the beginning of one.
  template <class Use>
  static void each_run_of(const Part& part, std::uint64_t offset, std::uint64_t length, Use& use) {
    const auto row_at = [&](std::uint64_t at) {
      return part.base + static_cast<std::int64_t>(at / part.row) * part.stride + at % part.row;
    };
    if (const std::uint64_t within = offset % part.row; within != 0) {
      const std::uint64_t n = std::min(length, part.row - within);
      use(Piece{row_at(offset), n, part.of}, 0, 1);
      offset += n;
      length -= n;
    }
    if (const std::uint64_t whole = length / part.row; whole != 0) {
      use(Piece{row_at(offset), part.row, part.of}, part.stride, whole);
      offset += whole * part.row;
      length -= whole * part.row;
    }
    if (length != 0) use(Piece{row_at(offset), length, part.of}, 0, 1);
  }
  boost::container::small_vector<Part, 1> parts_;
};

// Copies between two messages' memories, whosever they are. False: some of it could not be reached.
[[nodiscard]] bool copy(const Pieces& to, const Pieces& from, std::uint64_t offset, std::uint64_t length);

// The two halves of it through a block of this process, under a name. False: not yet. Under a name at most
// one piece of either memory is of another process.
[[nodiscard]] bool gather(std::byte* to, const Pieces& from, std::uint64_t offset, std::uint64_t length,
                          std::uint64_t name);
[[nodiscard]] bool scatter(const Pieces& to, const std::byte* from, std::uint64_t offset,
                           std::uint64_t length, std::uint64_t name);

} // namespace parc::protocol
