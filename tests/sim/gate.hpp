// SPDX-License-Identifier: BSD-3-Clause
// One program's gate, kept as daemon/session.cpp keeps it: what is written after a wait was released stays
// back until all that was released before it has begun or ended, and behind what is still to pass.
#pragma once

#include "protocol/engine.hpp"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <map>
#include <optional>

namespace parc::sim {

class Gate {
public:
  void release(std::size_t read) { not_begun_[read] = ++releases_; }
  [[nodiscard]] std::optional<std::size_t> released() const { // and has not begun
    return not_begun_.empty() ? std::nullopt : std::optional(not_begun_.begin()->first);
  }
  void settle(std::size_t read) { not_begun_.erase(read); } // it has begun, or is over

  [[nodiscard]] bool shut() const { return !not_begun_.empty() || !kept_.empty(); }
  void keep(std::uint64_t handle) { kept_.push_back({releases_, handle}); }
  void drop(std::uint64_t handle) {
    std::erase_if(kept_, [&](const Kept& each) { return each.handle == handle; });
  }
  // Not from inside an engine's call; true: something passed.
  bool pass(protocol::Engine& engine) {
    bool passed = false;
    for (; !kept_.empty() && kept_.front().gate < first(); passed = true) {
      const std::uint64_t handle = kept_.front().handle;
      kept_.pop_front(); // it may finish at once
      engine.pass(handle);
    }
    return passed;
  }

private:
  struct Kept {
    std::uint64_t gate; // the last release before it
    std::uint64_t handle;
  };
  // Of the releases that have not begun.
  [[nodiscard]] std::uint64_t first() const {
    std::uint64_t least = ~std::uint64_t{0};
    for (const auto& [read, number] : not_begun_) least = std::min(least, number);
    return least;
  }

  std::uint64_t releases_ = 0;
  std::map<std::size_t, std::uint64_t> not_begun_; // the numbers of releases, by their reads
  std::deque<Kept> kept_;                          // writes, in their order
};

} // namespace parc::sim
