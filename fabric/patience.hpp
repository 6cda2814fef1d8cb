// SPDX-License-Identifier: BSD-3-Clause
// What a thread does between looks that find nothing. MPI's libraries wait by looking into a completion
// queue, and test requests by looking, too; what the program means by a row of looks is known only when it is
// over.
//
// Looks that come at once one after another are a row. In it the core is offered to others at every second
// look: kernels and neighbours need it for what is waited for. A row that goes on sleeps, too, at first no
// longer than it has been awake, so that a program that tests many requests in a row is never slowed down by
// more than that factor, and as it grows old most of the time: then it is a wait.
#pragma once

#include <algorithm>
#include <chrono>

namespace parc::fabric {

class Patience {
public:
  using Clock = std::chrono::steady_clock;
  struct Next {
    bool offer_core = false;
    Clock::duration sleep{}; // 0: not at all
  };

  // A look that ended at `now` has found nothing.
  [[nodiscard]] Next looked(Clock::time_point now) {
    if (now - last_ > at_once) begin(now);
    if (++looks_ % 2 != 0) return {};
    const Clock::duration age = now - began_, awake = age - slept_;
    if (awake < before_sleep) return {.offer_core = true};
    const Clock::duration left = age < old ? share_of(age) * awake - slept_ : longest_sleep;
    if (left < shortest_sleep) return {.offer_core = true};
    return {.sleep = std::min<Clock::duration>(left, longest_sleep)};
  }

  // It has done so until `now`: what took that long, the core or sleep, is part of the row.
  void done(const Next& next, Clock::time_point before, Clock::time_point now) {
    if (next.sleep.count() != 0) slept_ += now - before;
    last_ = now;
  }

  // Something has come.
  void begin(Clock::time_point now) {
    began_ = last_ = now;
    slept_ = {};
    looks_ = 0;
  }

private:
  static constexpr std::chrono::microseconds at_once{2}, before_sleep{200}, shortest_sleep{50};
  static constexpr std::chrono::milliseconds young{1}, old{10}, longest_sleep{16};
  static constexpr int share_of(Clock::duration age) { return age < young ? 1 : 4; }

  Clock::time_point began_{}, last_{};
  Clock::duration slept_{};
  unsigned looks_ = 0;
};

} // namespace parc::fabric
