// SPDX-License-Identifier: BSD-3-Clause
// The core that this thread runs on, and going to another one now, where the scheduler would sooner or later.
#pragma once

#include <cstddef>
#include <sched.h>

namespace parc {

[[nodiscard]] inline int current_core() { // below 0: the system does not say
  return sched_getcpu();
}

// Where it may run there. Afterwards it may run wherever it could before. A few microseconds.
inline void move_to_core(int core) {
  cpu_set_t before, there;
  CPU_ZERO(&there);
  CPU_SET(static_cast<std::size_t>(core), &there);
  if (sched_getaffinity(0, sizeof before, &before) != 0 ||
      !CPU_ISSET(static_cast<std::size_t>(core), &before) || sched_setaffinity(0, sizeof there, &there) != 0)
    return;
  (void)sched_setaffinity(0, sizeof before, &before);
}

} // namespace parc
