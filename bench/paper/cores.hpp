// SPDX-License-Identifier: BSD-3-Clause
// Each host has one core, its own, for its program and its kernel: as the machines of 1994, and no figure
// hangs on where the system happens to put two processes.
#pragma once

#include <sched.h>
#include <sys/types.h>
#include <vector>

namespace parc::bench {

inline std::vector<int> usable_cores() {
  cpu_set_t set;
  CPU_ZERO(&set);
  sched_getaffinity(0, sizeof set, &set);
  std::vector<int> cores;
  for (int core = 0; core < CPU_SETSIZE; ++core)
    if (CPU_ISSET(core, &set)) cores.push_back(core);
  return cores;
}

// The process, and what it starts from then on; 0: the caller.
inline void stay_on(int core, pid_t process = 0) {
  cpu_set_t set;
  CPU_ZERO(&set);
  CPU_SET(core, &set);
  sched_setaffinity(process, sizeof set, &set);
}

inline int core_of(std::size_t host) {
  const std::vector<int> cores = usable_cores();
  return cores[host % cores.size()];
}

} // namespace parc::bench
