// SPDX-License-Identifier: BSD-3-Clause
// The core that this thread runs on, and going to another one now, where the scheduler would sooner or later.
#pragma once

#include <bitset>
#include <cstddef>
#include <sched.h>

namespace parc {

[[nodiscard]] inline int current_core() { // below 0: the system does not say
  return sched_getcpu();
}

using CoreSet = std::bitset<CPU_SETSIZE>;

[[nodiscard]] inline bool is_core(int core) {
  return core >= 0 && core < CPU_SETSIZE;
}

[[nodiscard]] inline int first_of(const CoreSet& cores) {
  int core = 0;
  while (core < CPU_SETSIZE && !cores.test(static_cast<std::size_t>(core))) ++core;
  return core;
}

// Where this thread may run; none: the system does not say.
[[nodiscard]] inline CoreSet allowed_cores() {
  cpu_set_t set;
  CoreSet cores;
  if (sched_getaffinity(0, sizeof set, &set) == 0)
    for (std::size_t core = 0; core < CPU_SETSIZE; ++core)
      if (CPU_ISSET(core, &set)) cores.set(core);
  return cores;
}

// For what works for long and is on `here`: where somebody rests and nobody computes; where nobody rests,
// away from who computes.
[[nodiscard]] inline int core_to_work_on(int here, const CoreSet& allowed, const CoreSet& rests,
                                         const CoreSet& computes) {
  const CoreSet free = allowed & ~computes, best = rests & free;
  if (!is_core(here)) return here;
  const bool is_free = free.test(static_cast<std::size_t>(here));
  if (best.any()) return best.test(static_cast<std::size_t>(here)) ? here : first_of(best);
  return is_free || free.none() ? here : first_of(free);
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
