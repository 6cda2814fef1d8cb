// SPDX-License-Identifier: BSD-3-Clause
// The rule that no wake-up is lost: one side publishes work and then asks whether the other sleeps; the other
// says that it sleeps and then asks once more whether there is work. Each side's store must be visible before
// its load is made, which release and acquire do not promise (store-load reordering): both need the seq_cst
// fence between the two. With it, at least one side sees the other: either the publisher sees `asleep` and
// rings, or the sleeper sees the work and stays up.
//
// A bell costs the publisher a system call and the sleeper's core an interrupt. Work that changes nothing for
// a deep sleeper is published without one: it is seen when something else wakes it, or rung for later.
#pragma once

#include <atomic>
#include <cstdint>

namespace parc::shm {

enum class Sleep : std::uint32_t { awake, deep, light }; // deep: only some work wakes it; light: any

// Publisher: call after the release store that publishes; true means: ring. `least`: deep wakes every
// sleeper, light leaves a deep one asleep. The flag is taken down, so that one ring wakes one sleep.
inline bool must_ring(std::atomic<std::uint32_t>& asleep, Sleep least = Sleep::deep) {
  std::atomic_thread_fence(std::memory_order_seq_cst);
  if (asleep.load(std::memory_order_relaxed) < static_cast<std::uint32_t>(least)) return false;
  return asleep.exchange(0, std::memory_order_relaxed) != 0;
}

// Sleeper: call, look for work once more, and only then sleep. Take the flag down after waking.
inline void announce_sleep(std::atomic<std::uint32_t>& asleep, Sleep how = Sleep::light) {
  asleep.store(static_cast<std::uint32_t>(how), std::memory_order_relaxed);
  std::atomic_thread_fence(std::memory_order_seq_cst);
}

inline void announce_awake(std::atomic<std::uint32_t>& asleep) {
  asleep.store(0, std::memory_order_relaxed);
}

} // namespace parc::shm
