// SPDX-License-Identifier: BSD-3-Clause
// The bell of shm::Bounce, a futex in the segment: a thread of the program sleeps until the kernel asks for
// something. No wake-up is lost: the sleeper reads the bell, then looks at what is asked, then sleeps only
// while the bell is as it was; and it says that it may sleep before it reads the bell (both seq_cst).
#pragma once

#include "shm/layout.hpp"

#include <climits>
#include <linux/futex.h>
#include <sys/syscall.h>
#include <unistd.h>

namespace parc::shm {

static_assert(sizeof(Bounce::bell) == sizeof(std::uint32_t));

// Not FUTEX_PRIVATE: two processes.
inline void wake(Bounce& bounce) {
  bounce.bell.fetch_add(1, std::memory_order_seq_cst);
  if (bounce.sleepers.load(std::memory_order_seq_cst) != 0)
    (void)syscall(SYS_futex, &bounce.bell, FUTEX_WAKE, INT_MAX, nullptr, nullptr, 0);
}

// Returns when the bell is not `seen` any more, or for nothing.
inline void sleep(Bounce& bounce, std::uint32_t seen) {
  (void)syscall(SYS_futex, &bounce.bell, FUTEX_WAIT, seen, nullptr, nullptr, 0);
}

} // namespace parc::shm
