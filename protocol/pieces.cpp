// SPDX-License-Identifier: BSD-3-Clause
#include "protocol/pieces.hpp"

#include <array>

namespace parc::protocol {
namespace {

// Two other processes' memories: through a block that stays in the cache.
bool copy_across(const Piece& to, const Piece& from) {
  constexpr std::size_t block_bytes = std::size_t{64} << 10;
  alignas(64) static thread_local std::array<std::byte, block_bytes> block;
  for (std::uint64_t at = 0; at < to.length;) {
    const std::uint64_t n = std::min<std::uint64_t>(block.size(), to.length - at);
    if (!from.of->read(block.data(), from.base + at, n, CrossMemory::no_name) ||
        !to.of->write(to.base + at, block.data(), n, CrossMemory::no_name))
      return false;
    at += n;
  }
  return true;
}

// Of one length. A program may read into the memory that it writes from.
bool copy_piece(const Piece& to, const Piece& from) {
  if (to.of != nullptr && from.of != nullptr) return copy_across(to, from);
  if (from.of != nullptr) return from.of->read(to.base, from.base, to.length, CrossMemory::no_name);
  if (to.of != nullptr) return to.of->write(to.base, from.base, to.length, CrossMemory::no_name);
  std::memmove(to.base, from.base, to.length);
  return true;
}

} // namespace

bool copy(const Pieces& to, const Pieces& from, std::uint64_t offset, std::uint64_t length) {
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
  from.each_piece(offset, length, [&](const Piece& piece) {
    if (piece.of == nullptr)
      std::memcpy(to, piece.base, piece.length);
    else
      copied = piece.of->read(to, piece.base, piece.length, name) && copied;
    to += piece.length;
  });
  return copied;
}

bool scatter(const Pieces& to, const std::byte* from, std::uint64_t offset, std::uint64_t length,
             std::uint64_t name) {
  bool copied = true;
  to.each_piece(offset, length, [&](const Piece& piece) {
    if (piece.of == nullptr)
      std::memcpy(piece.base, from, piece.length);
    else
      copied = piece.of->write(piece.base, from, piece.length, name) && copied;
    from += piece.length;
  });
  return copied;
}

} // namespace parc::protocol
