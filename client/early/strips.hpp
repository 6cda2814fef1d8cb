// SPDX-License-Identifier: BSD-3-Clause
// How much a touch of a guarded page waits for (HUNT 2005, sections 5.1 to 5.3). Nothing is cut on the wire:
// the kernel says how much of a message is there, and a strip is what has to arrive before a program that has
// touched some of it is woken. Short strips let it go on sooner, long ones wake it less often.
//
// The counts of figure 4: while many gets are under way each is waited for whole, as the others arrive
// meanwhile, and what that hides no strip hides again; under an order the last of them may be a train, of
// whose gets as many are waited for together as make up a strip: it cuts long messages and joins short ones.
// Bytes that are missing are guarded all the same: a promise of an order that is not kept costs waits.
// Threads: any; signal handlers too. What is measured may be lost.
#pragma once

#include "client/early/guard_table.hpp"

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>

namespace parc::client {

class Strips {
public:
  using Time = std::chrono::nanoseconds;
  static constexpr std::uint64_t longest = std::uint64_t{64} << 10; // that is chosen here
  static constexpr std::int64_t wakes_worth = 8; // so many times what waking costs a strip takes to come

  // parc_set_strip, parc_set_train; 0: by what is measured; never.
  void set(std::uint64_t bytes) { set_.store(bytes, std::memory_order_relaxed); }
  void set_train(unsigned gets) { train_.store(gets, std::memory_order_relaxed); }

  // So many bytes of a message from there have come while somebody waited for them.
  void note(int peer, std::uint64_t bytes, Time took) {
    if (bytes == 0 || took.count() <= 0) return;
    std::atomic<double>& rate = rate_of(peer);
    const double now = static_cast<double>(bytes) / static_cast<double>(took.count());
    const double known = rate.load(std::memory_order_relaxed);
    rate.store(known == 0 ? now : known + (now - known) / 4, std::memory_order_relaxed);
  }

  // Of a transfer that is released while so many other gets still miss something.
  [[nodiscard]] Grain grain_of(const Guard& guard, std::size_t others, Time wake) const {
    const unsigned train = train_.load(std::memory_order_relaxed);
    if (!guard.gets) return Grain::strips;
    if (train == 0) return others > most_in_strips(guard, wake) ? Grain::whole : Grain::strips;
    if (others < train) return Grain::strips;
    return guard.order == Order::any ? Grain::whole : Grain::train;
  }

  // Some of `touched`, which is missing, is wanted: what is waited for.
  [[nodiscard]] Stretch awaited(const Guard& guard, const Stretch& touched, Time wake) const {
    const Stretch missing = guard.missing;
    if (guard.grain != Grain::strips) return missing;
    const std::uint64_t equal = set_.load(std::memory_order_relaxed);
    const std::uint64_t strip = equal != 0 ? equal : std::min(measured(guard, wake), guard.length / 4);
    if (strip >= guard.length) return missing;
    Stretch wanted = touched;
    if (equal == 0) { // from where it comes next
      if (guard.from_end)
        wanted.low = std::min(wanted.low, wanted.high - std::min(wanted.high, strip));
      else
        wanted.high = std::max(wanted.high, wanted.low + strip);
    } else {
      wanted.low = std::min(wanted.low, wanted.low / strip * strip);
      wanted.high = std::max(wanted.high, ((wanted.high - 1) / strip + 1) * strip);
    }
    return {std::max(wanted.low, missing.low), std::min(wanted.high, missing.high)};
  }

  // Of a train's get, and of those that are waited for with it.
  [[nodiscard]] std::uint64_t together(const Guard& guard, Time wake) const {
    const std::uint64_t equal = set_.load(std::memory_order_relaxed);
    return equal != 0 ? equal : measured(guard, wake);
  }

private:
  static constexpr std::size_t peers = 16; // where there are more, some share a place

  // Bytes in a nanosecond; 0: not known.
  [[nodiscard]] const std::atomic<double>& rate_of(int peer) const {
    return rates_[static_cast<unsigned>(peer) % peers];
  }
  [[nodiscard]] std::atomic<double>& rate_of(int peer) { return rates_[static_cast<unsigned>(peer) % peers]; }

  [[nodiscard]] std::uint64_t measured(const Guard& guard, Time wake) const {
    const double brings = rate_of(guard.envelope.peer).load(std::memory_order_relaxed) *
                          static_cast<double>(wake.count() * wakes_worth);
    return brings >= static_cast<double>(longest) ? longest : static_cast<std::uint64_t>(brings);
  }

  // T0. Strips gain one message's time, of a train's first or last; they cost wakes of all of them.
  [[nodiscard]] std::size_t most_in_strips(const Guard& guard, Time wake) const {
    const double rate = rate_of(guard.envelope.peer).load(std::memory_order_relaxed);
    const std::uint64_t equal = set_.load(std::memory_order_relaxed);
    if (rate == 0 || wake.count() <= 0 || equal != 0) return SIZE_MAX;
    const std::uint64_t strip = std::min(measured(guard, wake), guard.length / 4);
    const double takes = static_cast<double>(strip) / rate;
    return static_cast<std::size_t>(takes / static_cast<double>(wake.count()));
  }

  std::atomic<std::uint64_t> set_ = 0;
  std::atomic<unsigned> train_ = 0;
  std::array<std::atomic<double>, peers> rates_{};
};

} // namespace parc::client
