// SPDX-License-Identifier: BSD-3-Clause
// Pages of the program that are not to be touched in some way, as it has said itself: in ranges, of which few
// are expected. Where they are too many, all pages are. Threads: any; not for signal handlers that interrupt
// libparc.
#pragma once

#include "client/base/pages.hpp"

#include <array>
#include <atomic>
#include <cstddef>
#include <mutex>

namespace parc::client {

class PageSet {
public:
  static constexpr std::size_t most = 128; // ranges

  void add(std::uintptr_t begin, std::uintptr_t end) {
    const std::lock_guard hold(lock_);
    cut(begin, end);
    put(begin, end);
  }
  void remove(std::uintptr_t begin, std::uintptr_t end) {
    if (empty()) return;
    const std::lock_guard hold(lock_);
    cut(begin, end);
  }
  [[nodiscard]] bool overlaps(std::uintptr_t begin, std::uintptr_t end) const {
    if (empty()) return false;
    const std::lock_guard hold(lock_);
    for (std::size_t i = 0; i < size_; ++i)
      if (ranges_[i].begin < end && begin < ranges_[i].end) return true;
    return false;
  }

private:
  struct Range {
    std::uintptr_t begin, end;
  };
  // Relaxed: who has not heard of a change has not been told of it by the program either.
  [[nodiscard]] bool empty() const { return size_.load(std::memory_order_relaxed) == 0; }
  void put(std::uintptr_t begin, std::uintptr_t end) {
    if (begin >= end) return;
    if (size_ == most) {
      ranges_[0] = {0, UINTPTR_MAX};
      size_ = 1;
      return;
    }
    ranges_[size_] = {begin, end};
    ++size_;
  }
  void cut(std::uintptr_t begin, std::uintptr_t end) {
    for (std::size_t i = 0; i < size_;) {
      const Range each = ranges_[i];
      if (each.begin >= end || each.end <= begin) {
        ++i;
        continue;
      }
      ranges_[i] = ranges_[size_ - 1];
      --size_;
      if (each.begin < begin) put(each.begin, begin);
      if (each.end > end) put(end, each.end);
    }
  }

  mutable std::mutex lock_;
  std::array<Range, most> ranges_; // the first size_; both under lock_
  std::atomic<std::size_t> size_ = 0;
};

// Where the program allows itself no loads, or no stores: of memory that others see too, where only its
// calls say so. Of the process.
inline PageSet protected_pages;

} // namespace parc::client
