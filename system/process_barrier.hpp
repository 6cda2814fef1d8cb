// SPDX-License-Identifier: BSD-3-Clause
// A memory fence with two ends of unlike cost. Where two processes each store a word and then load the
// other's, both need a full fence between the two, or neither may see the other (store-load reordering). If
// one does that all the time and the other seldom, the seldom one can make both fences: process_barrier()
// interrupts every core that runs a process which has joined, and what such a process stored before that is
// seen by its caller afterwards. Who has joined then needs only that the compiler keeps the order, as long as
// whom it meets has joined, too. Linux membarrier(2), MEMBARRIER_CMD_GLOBAL_EXPEDITED, of 2018; some
// containers refuse it.
#pragma once

#include <atomic>
#include <linux/membarrier.h>
#include <sys/syscall.h>
#include <unistd.h>

namespace parc {

// Of this process, for good. False: the system has no such thing.
[[nodiscard]] inline bool join_process_barriers() {
  return syscall(SYS_membarrier, MEMBARRIER_CMD_REGISTER_GLOBAL_EXPEDITED, 0, 0) == 0;
}

// About a microsecond, and an interrupt for each busy core. Async-signal-safe.
inline void process_barrier() {
  std::atomic_thread_fence(std::memory_order_seq_cst);
  (void)syscall(SYS_membarrier, MEMBARRIER_CMD_GLOBAL_EXPEDITED, 0, 0);
}

// The frequent end. `both_joined`: the other end makes process barriers.
inline void light_fence(bool both_joined) {
  if (both_joined)
    std::atomic_signal_fence(std::memory_order_seq_cst);
  else
    std::atomic_thread_fence(std::memory_order_seq_cst);
}

} // namespace parc
