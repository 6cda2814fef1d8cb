// SPDX-License-Identifier: BSD-3-Clause
// Memory of this program that others get from: a read into it is not released early, as its kernel would
// answer them from what is not there yet, which no gate sees. Threads: any; takes a lock where there is some.
#pragma once

#include "client/base/own_memory.hpp"

#include <atomic>
#include <cstdint>
#include <list>
#include <mutex>
#include <optional>
#include <sys/uio.h>

namespace parc::client {

class ExposedMemory {
  struct Range {
    std::uint64_t address = 0, bytes = 0;
    std::optional<std::uint64_t> window; // none: it is being exposed
  };
  // Looked at under the guards' lock: the program's heap may be guarded.
  using Ranges = std::list<Range, OwnMemory<Range>>;

public:
  // While it lives, and on if it is done().
  class Exposing {
  public:
    Exposing(ExposedMemory& all, std::uint64_t address, std::uint64_t bytes) : all_(all) {
      const std::lock_guard hold(all.lock_);
      range_ = all.ranges_.insert(all.ranges_.end(), {address, bytes, {}});
      all.count();
    }
    Exposing(const Exposing&) = delete;
    Exposing& operator=(const Exposing&) = delete;
    ~Exposing() {
      const std::lock_guard hold(all_.lock_);
      if (!range_->window) all_.ranges_.erase(range_);
      all_.count();
    }
    void done(std::uint64_t window) {
      const std::lock_guard hold(all_.lock_);
      range_->window = window;
    }

  private:
    ExposedMemory& all_;
    Ranges::iterator range_;
  };

  void remove(std::uint64_t window) {
    const std::lock_guard hold(lock_);
    ranges_.remove_if([window](const Range& range) { return range.window == window; });
    count();
  }

  template <class Pieces> [[nodiscard]] bool has_any_of(const Pieces& pieces) const {
    if (count_.load(std::memory_order_seq_cst) == 0) return false;
    const std::lock_guard hold(lock_);
    for (const iovec& piece : pieces) {
      const auto begin = reinterpret_cast<std::uintptr_t>(piece.iov_base);
      for (const Range& range : ranges_)
        if (begin < range.address + range.bytes && range.address < begin + piece.iov_len) return true;
    }
    return false;
  }

private:
  void count() { count_.store(ranges_.size(), std::memory_order_seq_cst); }

  mutable std::mutex lock_;
  std::atomic<std::size_t> count_ = 0;
  Ranges ranges_;
};

} // namespace parc::client
