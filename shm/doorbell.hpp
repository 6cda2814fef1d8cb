// SPDX-License-Identifier: BSD-3-Clause
// The rule that no wake-up is lost: one side publishes work and then asks whether the other sleeps; the other
// says that it sleeps and then asks once more whether there is work. Each side's store must be visible before
// its load is made, which release and acquire do not promise (store-load reordering): both need the seq_cst
// fence between the two. With it, at least one side sees the other: either the publisher sees `asleep` and
// rings, or the sleeper sees the work and stays up.
#pragma once

#include <atomic>
#include <cstdint>

namespace parc::shm {

// Publisher: call after the release store that publishes; true means: ring. The flag is taken down, so that
// one ring wakes one sleep.
inline bool must_ring(std::atomic<std::uint32_t>& asleep) {
  std::atomic_thread_fence(std::memory_order_seq_cst);
  if (asleep.load(std::memory_order_relaxed) == 0) return false;
  return asleep.exchange(0, std::memory_order_relaxed) != 0;
}

// Sleeper: call, look for work once more, and only then sleep. Take the flag down after waking.
inline void announce_sleep(std::atomic<std::uint32_t>& asleep) {
  asleep.store(1, std::memory_order_relaxed);
  std::atomic_thread_fence(std::memory_order_seq_cst);
}

inline void announce_awake(std::atomic<std::uint32_t>& asleep) {
  asleep.store(0, std::memory_order_relaxed);
}

} // namespace parc::shm
