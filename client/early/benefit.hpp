// SPDX-License-Identifier: BSD-3-Clause
// Whether early release pays: of a buffer, and of the program. Threads: any, and signal handlers; a count
// that is lost is no harm.
#pragma once

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <cstdint>

namespace parc::client {

// By buffer and by where in the program the read was started: memory of a stack or of malloc is used by many
// (HUNT 2005, section 5.5: statistics of a program's communication). Some reads are touched as soon as their
// waits have returned, as those of a reduction are: guarding their pages costs something and hides nothing.
// When that was so several times in a row, the next reads of the buffer from there are not released, and then
// one is tried again. A few are remembered: one that shares its tally with another starts anew.
class Benefit {
public:
  static constexpr unsigned patience = 4; // releases in vain
  static constexpr unsigned pause = 64;   // reads that are not released then

  struct Use {
    const void* buffer;
    std::uint64_t site;
  };
  // Of a read that starts: its wait should be released.
  [[nodiscard]] bool expected(const Use& use) {
    const std::uint64_t key = key_of(use);
    Tally& tally = tally_of(key);
    if (tally.key.load(std::memory_order_relaxed) != key ||
        tally.in_vain.load(std::memory_order_relaxed) < patience)
      return true;
    if (tally.paused.fetch_add(1, std::memory_order_relaxed) + 1 < pause) return false;
    tally.paused.store(0, std::memory_order_relaxed);
    tally.in_vain.store(patience - 1, std::memory_order_relaxed);
    return true;
  }

  // Of one that was released.
  void ended(const Use& use, bool paid) {
    const std::uint64_t key = key_of(use);
    Tally& tally = tally_of(key);
    if (tally.key.exchange(key, std::memory_order_relaxed) != key || paid) {
      tally.in_vain.store(0, std::memory_order_relaxed);
      tally.paused.store(0, std::memory_order_relaxed);
    }
    if (!paid) tally.in_vain.fetch_add(1, std::memory_order_relaxed);
  }

private:
  struct Tally {
    std::atomic<std::uint64_t> key = 0;
    std::atomic<unsigned> in_vain = 0, paused = 0;
  };
  [[nodiscard]] static std::uint64_t key_of(const Use& use) {
    return reinterpret_cast<std::uintptr_t>(use.buffer) ^ use.site * 0x9e3779b97f4a7c15u;
  }
  [[nodiscard]] Tally& tally_of(std::uint64_t key) {
    return tallies_[(key >> 6 ^ key >> 12 ^ key >> 20) % tallies_.size()];
  }

  std::array<Tally, 64> tallies_;
};

// What the program may lose. A read that may be released costs something before it is known whether that
// pays: its memory is adopted, or looked up, and its progress is watched. It was in vain when its message was
// there before its wait, or when its pages were touched, or had arrived, before guarding them had paid. After
// too many of these, or too much time, reads are made as without early release, for a second; then a few are
// tried, and where they are in vain it is for twice as long.
class Budget {
public:
  using Time = std::chrono::nanoseconds;
  static constexpr unsigned most_in_vain = 1000; // reads
  static constexpr Time most_lost = std::chrono::milliseconds(100);
  // Of one read: large memory is adopted once, and read into often.
  static constexpr Time most_of_one = std::chrono::milliseconds(10);
  // A release that paid makes good for others, at most so many: it may only look so, where the system took
  // the core away between the release and the touch.
  static constexpr Time::rep good_for = 32;
  static constexpr unsigned tried_again = 16;                                // reads, and a tenth of the time
  static constexpr std::uint32_t first_pause = 1000, longest_pause = 64'000; // ms

  // Reads that start are not to be released. `now`: a clock of milliseconds, which wraps.
  template <class Now> [[nodiscard]] bool pauses(const Now& now) const {
    const std::uint32_t paused = pause_.load(std::memory_order_relaxed);
    return paused != 0 && left_.load(std::memory_order_relaxed) <= 0 &&
           now() - since_.load(std::memory_order_relaxed) < paused;
  }
  // A read that starts may be released; where a pause is over, some are tried from here on.
  template <class Now> [[nodiscard]] bool allows(const Now& now) {
    if (pauses(now)) return false;
    if (left_.load(std::memory_order_relaxed) <= 0) {
      lost_.store((most_lost - most_lost / 10).count(), std::memory_order_relaxed);
      left_.store(tried_again, std::memory_order_relaxed);
    }
    return true;
  }

  // What one has cost so far.
  void spend(Time cost) { lost_.fetch_add(std::min(cost, most_of_one).count(), std::memory_order_relaxed); }

  // One that was allowed has ended: in vain, or its release has gained more than it cost.
  template <class Now> void ended_in_vain(const Now& now) {
    left_.fetch_sub(1, std::memory_order_relaxed);
    if (left_.load(std::memory_order_relaxed) <= 0 ||
        lost_.load(std::memory_order_relaxed) >= most_lost.count())
      stop(now());
  }
  void paid(Time gained, Time cost) {
    const auto lost = std::max<Time::rep>(lost_.load(std::memory_order_relaxed) - gained.count(), 0);
    lost_.store(lost, std::memory_order_relaxed);
    if (lost >= most_lost.count()) return;
    const auto good = static_cast<unsigned>(std::min<Time::rep>(gained / std::max(cost, Time(1)), good_for));
    const int left = std::max(left_.load(std::memory_order_relaxed), 0) + static_cast<int>(good);
    left_.store(std::min(left, static_cast<int>(most_in_vain)), std::memory_order_relaxed);
    pause_.store(0, std::memory_order_relaxed);
  }

private:
  // Reads that were started before a pause end in it, and make it no longer.
  void stop(std::uint32_t now) {
    const std::uint32_t paused = pause_.load(std::memory_order_relaxed);
    if (paused != 0 && now - since_.load(std::memory_order_relaxed) < paused) return;
    left_.store(0, std::memory_order_relaxed);
    since_.store(now, std::memory_order_relaxed);
    pause_.store(paused == 0 ? first_pause : std::min(2 * paused, longest_pause), std::memory_order_relaxed);
  }

  std::atomic<int> left_ = most_in_vain; // reads that may still be in vain
  std::atomic<Time::rep> lost_ = 0;
  std::atomic<std::uint32_t> pause_ = 0; // how long, in ms; 0: there has been none since a release paid
  std::atomic<std::uint32_t> since_ = 0;
};

} // namespace parc::client
