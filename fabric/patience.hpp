// SPDX-License-Identifier: BSD-3-Clause
// What a thread does between looks that find nothing. MPI's libraries wait by looking into a completion
// queue, and test requests by looking, too; what the program means by a row of looks is known only when it is
// over.
//
// Looks that come at once one after another are a row; what comes late once in hundreds was held up by the
// system, or by a library's own affairs, and not by a program's work. In it the core is offered to others now
// and then: kernels and neighbours need it for what is waited for. The system takes as long for that as
// several looks, and a neighbour with a core of its own less for its answer. A row that goes on sleeps, too,
// each time for a small part of its age: what it waits for may be a word in memory that ranks share, which
// wakes nobody. While it is young it sleeps no longer than it is awake, so that a program that tests many
// requests in a row is never slowed down by more than that factor; as it grows old it sleeps most of the
// time: then it is a wait. Where somebody computes on this core, which an offer of it that is taken for long
// shows, it sleeps sooner and longer. What a library does between its looks takes a part of the time that
// they take; who does more than that between them works, and never sleeps, however soon it looks again.
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

  // The next look's own time is wanted.
  [[nodiscard]] bool is_timed() const { return (looks_ + 1) % looks_a_sample == 0; }

  // A look that ended at `now` has found nothing; `own` is its time, where that was wanted.
  [[nodiscard]] Next looked(Clock::time_point now, Clock::duration own = {}) {
    const bool late = now - last_ > (after_sleep_ ? held_up : at_once);
    if (ended_ || (late && !is_excused(now))) {
      begin(now);
    } else if (!late && !after_sleep_ && !after_offer_) { // else who else was on the core is counted
      passed_ += now - last_;
      looking_ += own * looks_a_sample;
    }
    if (++looks_ % looks_a_window == 0) passed_ /= 2, looking_ /= 2; // it may become another
    if (looks_ % looks_an_offer != 0) return {};
    const Clock::duration most = longest_now(now);
    if (most < shortest_sleep || works()) return {.offer_core = true};
    return {.sleep = std::min<Clock::duration>(most, longest_sleep)};
  }

  // What belongs to a row besides, from `before` to `now`: the call that asks for a look.
  void called(Clock::time_point before, Clock::time_point now) {
    const bool late = before - last_ > (after_sleep_ ? held_up : at_once);
    if (ended_ || (late && !is_excused(before)))
      begin(before);
    else if (!late && !after_sleep_ && !after_offer_)
      passed_ += before - last_;
    passed_ += now - before;
    looking_ += now - before;
    last_ = now;
  }

  // It has done so until `now`: what took that long, the core or sleep, is part of the row.
  void done(const Next& next, Clock::time_point before, Clock::time_point now) {
    const bool slow = next.offer_core && now - before > slow_offer;
    if (slow) shared_until_ = now + remembered;
    after_sleep_ = next.sleep.count() != 0;
    after_offer_ = next.offer_core;
    if (after_sleep_ || slow) slept_ += now - before;
    last_ = now;
  }

  // Something has come: the next look begins a row.
  void end() { ended_ = true; }

private:
  static constexpr std::chrono::microseconds at_once{2}, held_up{100}, before_sleep{200},
      shortest_sleep{250}; // shorter ones parc_completions polls
  static constexpr unsigned looks_a_late_one = 500;
  static constexpr unsigned looks_an_offer = 16, looks_a_window = 512;
  static constexpr unsigned looks_a_sample = 7; // what comes in each eighth look falls on any of them
  static constexpr std::chrono::milliseconds young{1}, old{10}, longest_sleep{16};
  static constexpr int part_of_age = 16;
  // Kernels and neighbours that poll, too, mostly give the core back sooner; the scheduler's slices are
  // longer.
  static constexpr std::chrono::microseconds slow_offer{400};
  static constexpr std::chrono::milliseconds remembered{100}; // that somebody computes on this core
  static constexpr int share_of(Clock::duration age) { return age < young ? 1 : 4; }

  [[nodiscard]] Clock::duration longest_now(Clock::time_point now) const {
    const Clock::duration age = now - began_, awake = age - slept_, part = age / part_of_age;
    const bool shared = now < shared_until_;
    if (age >= old) return shared ? Clock::duration(longest_sleep) : part;
    if (!shared) return std::min(part, awake - slept_);
    return awake < before_sleep ? Clock::duration{} : share_of(age) * awake - slept_;
  }

  [[nodiscard]] bool works() const { return passed_ > 2 * looking_; }

  void begin(Clock::time_point now) {
    began_ = last_ = now;
    slept_ = passed_ = looking_ = {};
    looks_ = late_ = 0;
    after_sleep_ = after_offer_ = ended_ = false;
  }

  bool is_excused(Clock::time_point now) {
    if (now - last_ > held_up || late_ >= looks_ / looks_a_late_one) return false;
    ++late_;
    return true;
  }

  Clock::time_point began_{}, last_{}, shared_until_{};
  Clock::duration slept_{};
  Clock::duration passed_{}, looking_{}; // awake, and of that in looks: of the last ones
  unsigned looks_ = 0, late_ = 0;        // of the row
  bool after_sleep_ = false, after_offer_ = false, ended_ = true;
};

} // namespace parc::fabric
