// SPDX-License-Identifier: BSD-3-Clause
// A program's gate (early release, section 2.5 of its paper): what it writes to others after a wait was
// released stays back until all that was released before it has begun or ended, so that nobody hears of an
// effect before its cause. What is kept leaves in its order.
#pragma once

#include <algorithm>
#include <boost/container/flat_set.hpp>
#include <cstdint>
#include <deque>

namespace parc::protocol {

class Gate {
public:
  // A wait has returned before its read has begun: the number of this release, from 1.
  std::uint64_t release() {
    not_begun_.insert(not_begun_.end(), ++releases_);
    return releases_;
  }
  void begun(std::uint64_t release) { not_begun_.erase(release); } // its read has begun, or is over
  [[nodiscard]] std::uint64_t first() const {
    return not_begun_.empty() ? 0 : *not_begun_.begin();
  } // 0: none

  // Behind others that are about to pass, too: writes to one peer keep their order.
  [[nodiscard]] bool shut() const { return !not_begun_.empty() || !kept_.empty(); }
  [[nodiscard]] bool keeps() const { return !kept_.empty(); }
  // `puts_to`: the peer, where it is a put. A get from that peer is kept, too: it would not see the put.
  void keep(std::uint64_t write, std::int32_t puts_to = nobody) {
    kept_.push_back({releases_, write, puts_to});
  }
  [[nodiscard]] bool keeps_puts_to(std::int32_t peer) const {
    return std::ranges::any_of(kept_, [peer](const Kept& each) { return each.puts_to == peer; });
  }
  void drop(std::uint64_t write) {
    std::erase_if(kept_, [&](const Kept& each) { return each.write == write; });
  }
  // Those that nothing holds back any more. `pass` may end one, and drop others. True: there was one.
  template <class Pass> bool open(Pass pass) {
    bool passed = false;
    for (; !kept_.empty() && (not_begun_.empty() || kept_.front().gate < first()); passed = true) {
      const std::uint64_t write = kept_.front().write;
      kept_.pop_front();
      pass(write);
    }
    return passed;
  }

private:
  struct Kept {
    std::uint64_t gate;  // the last release before it
    std::uint64_t write; // or get
    std::int32_t puts_to;
  };
  static constexpr std::int32_t nobody = -1;
  std::uint64_t releases_ = 0;                          // numbers given
  boost::container::flat_set<std::uint64_t> not_begun_; // releases
  std::deque<Kept> kept_;                               // in their order
};

} // namespace parc::protocol
