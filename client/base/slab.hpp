// SPDX-License-Identifier: BSD-3-Clause
// A stretch of the arena that is cut into pieces of one size. Which of them are free stands here and not in
// the pieces: a store to a freed one, or the kernel's, breaks nothing. Threads: whose arena it is sees to it.
#pragma once

#include "client/base/own_memory.hpp"
#include "client/base/pages.hpp"

#include <array>
#include <cstdint>

namespace parc::client {

class Slab {
public:
  static constexpr std::size_t line = 64;              // what a piece is a multiple of, and aligned to
  static constexpr std::size_t largest = 1024;         // piece
  static constexpr std::size_t stretch = 1 << 16;      // a slab begins at a multiple of it
  static constexpr std::size_t bytes = stretch - line; // the heap's own header of what follows is in between
  static constexpr std::size_t kinds = largest / line + 1;
  // Of pieces that hold so many bytes: their length in lines.
  [[nodiscard]] static std::size_t kind_for(std::size_t wanted) {
    return wanted == 0 ? 1 : (wanted + line - 1) / line;
  }

  // All pieces are free; the lowest goes first.
  Slab(void* begin, std::size_t kind)
      : begin_(static_cast<std::byte*>(begin)), kind_(kind), pieces_(bytes / line / kind), free_(pieces_) {
    for (std::size_t i = 0; i < pieces_; ++i)
      lines_[i] = static_cast<std::uint16_t>((pieces_ - 1 - i) * kind);
  }
  static void* operator new(std::size_t own) { return map_own(own); }
  static void operator delete(void* memory, std::size_t own) { unmap_own(memory, own); }

  [[nodiscard]] void* begin() const { return begin_; }
  [[nodiscard]] std::size_t kind() const { return kind_; }
  [[nodiscard]] bool exhausted() const { return free_ == 0; }
  [[nodiscard]] bool unused() const { return free_ == pieces_; }

  [[nodiscard]] void* take() { return begin_ + line * lines_[--free_]; }
  void give(const void* piece) {
    lines_[free_++] = static_cast<std::uint16_t>((address_of(piece) - address_of(begin_)) / line);
  }

  Slab* next = nullptr; // of its kind that is not exhausted

private:
  std::byte* const begin_;
  const std::size_t kind_, pieces_;
  std::size_t free_;
  std::array<std::uint16_t, bytes / line> lines_; // where the free ones begin: [0, free_)
};

} // namespace parc::client
