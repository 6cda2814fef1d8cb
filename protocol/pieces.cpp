// SPDX-License-Identifier: BSD-3-Clause
#include "protocol/pieces.hpp"

#include <array>

namespace parc::protocol {
namespace {

constexpr std::size_t block_bytes = std::size_t{64} << 10; // which stays in the cache

std::byte* the_block() {
  alignas(64) static thread_local std::array<std::byte, block_bytes> block;
  return block.data();
}

// Of one length; one of them is here. A program may read into the memory that it writes from.
bool copy_piece(const Piece& to, const Piece& from) {
  if (from.of != nullptr) return from.of->read(to.base, from.base, to.length, CrossMemory::no_name);
  if (to.of != nullptr) return to.of->write(to.base, from.base, to.length, CrossMemory::no_name);
  std::memmove(to.base, from.base, to.length);
  return true;
}

// Two other processes' memories; or rows, of which the system takes many in one call.
bool copy_by_block(const Pieces& to, const Pieces& from, std::uint64_t offset, std::uint64_t length) {
  for (const std::uint64_t end = offset + length; offset < end;) {
    const std::uint64_t n = std::min<std::uint64_t>(block_bytes, end - offset);
    if (!gather(the_block(), from, offset, n, CrossMemory::no_name) ||
        !scatter(to, the_block(), offset, n, CrossMemory::no_name))
      return false;
    offset += n;
  }
  return true;
}

} // namespace

bool CrossMemory::read_rows(std::byte* to, const std::byte* first, std::uint64_t row, std::int64_t stride,
                            std::uint64_t count) {
  for (std::uint64_t i = 0; i < count; ++i)
    if (!read(to + i * row, first + static_cast<std::int64_t>(i) * stride, row, no_name)) return false;
  return true;
}

bool CrossMemory::write_rows(std::byte* first, const std::byte* from, std::uint64_t row, std::int64_t stride,
                             std::uint64_t count) {
  for (std::uint64_t i = 0; i < count; ++i)
    if (!write(first + static_cast<std::int64_t>(i) * stride, from + i * row, row, no_name)) return false;
  return true;
}

bool copy(const Pieces& to, const Pieces& from, std::uint64_t offset, std::uint64_t length) {
  if (to.has_rows_elsewhere() || from.has_rows_elsewhere() || (!to.is_here() && !from.is_here()))
    return copy_by_block(to, from, offset, length);
  bool reached = true;
  from.each_piece(offset, length, [&](Piece source) {
    to.each_piece(offset, source.length, [&](const Piece& target) {
      reached = reached && copy_piece(target, {source.base, target.length, source.of});
      source.base += target.length;
    });
    offset += source.length;
  });
  return reached;
}

bool gather(std::byte* to, const Pieces& from, std::uint64_t offset, std::uint64_t length,
            std::uint64_t name) {
  bool copied = true;
  from.each_run(offset, length, [&](Piece piece, std::int64_t stride, std::uint64_t count) {
    if (!copied) return;
    if (piece.of == nullptr)
      for (std::uint64_t i = 0; i < count; ++i)
        std::memcpy(to + i * piece.length, piece.base + static_cast<std::int64_t>(i) * stride, piece.length);
    else if (count == 1)
      copied = piece.of->read(to, piece.base, piece.length, name);
    else
      copied = piece.of->read_rows(to, piece.base, piece.length, stride, count);
    to += count * piece.length;
  });
  return copied;
}

bool scatter(const Pieces& to, const std::byte* from, std::uint64_t offset, std::uint64_t length,
             std::uint64_t name) {
  bool copied = true;
  to.each_run(offset, length, [&](Piece piece, std::int64_t stride, std::uint64_t count) {
    if (!copied) return;
    if (piece.of == nullptr)
      for (std::uint64_t i = 0; i < count; ++i)
        std::memcpy(piece.base + static_cast<std::int64_t>(i) * stride, from + i * piece.length,
                    piece.length);
    else if (count == 1)
      copied = piece.of->write(piece.base, from, piece.length, name);
    else
      copied = piece.of->write_rows(piece.base, from, piece.length, stride, count);
    from += count * piece.length;
  });
  return copied;
}

} // namespace parc::protocol
