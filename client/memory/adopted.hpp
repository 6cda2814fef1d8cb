// SPDX-License-Identifier: BSD-3-Clause
// Which extents of the program's own memory, adopted as shared memory (client/early/adoption.hpp), somebody
// uses.
#pragma once

#include <array>
#include <bitset>
#include <cstddef>
#include <cstdint>

namespace parc::client {

// The extents that an operation uses, and the segments that they are.
class Adopted {
public:
  static constexpr std::size_t most = 20; // extents of a program: the arena needs segments too

  [[nodiscard]] bool any() const { return extents_.any(); }
  [[nodiscard]] bool has_extent(std::size_t index) const { return extents_.test(index); }
  [[nodiscard]] bool has_segment(std::uint64_t id) const {
    for (std::size_t i = 0; i < most; ++i)
      if (extents_.test(i) && static_cast<std::uint64_t>(segments_[i]) == id) return true;
    return false;
  }
  void add(std::size_t index, int segment) {
    extents_.set(index);
    segments_[index] = segment;
  }

private:
  std::bitset<most> extents_;
  std::array<int, most> segments_; // of those
};

// Who adopts (client/early/adoption.hpp), as the rooms below it know him.
class AdoptedMemory {
public:
  // An operation has ended, for the kernel too.
  void end_use(const Adopted& adopted) {
    if (adopted.any()) end_uses(adopted);
  }
  // Somebody is about to map memory where the system has put it: what the program has freed there is the
  // kernel's no more.
  virtual void drop_freed() = 0;
  // Somebody needs a segment: gives one back that nothing uses. False: there is none.
  virtual bool give_back_one() = 0;

protected:
  ~AdoptedMemory() = default;

private:
  virtual void end_uses(const Adopted& adopted) = 0;
};

} // namespace parc::client
