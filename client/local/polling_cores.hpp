// SPDX-License-Identifier: BSD-3-Clause
// Where neighbours poll, for who polls on the same core: they hand it to each other with each message, which
// takes the system longer than many looks. The scheduler sees no harm in it where somebody computes on the
// other cores: it counts who wants to run.
#pragma once

#include <array>
#include <cstdint>
#include <sched.h>

namespace parc::client {

class PollingCores {
public:
  // Somebody else polls there.
  void add(int core) {
    if (is_core(core)) ++others_[static_cast<std::size_t>(core)];
  }
  // Where who polls on `here` shares the core with fewer; `here`: nowhere. The search begins at `first`.
  [[nodiscard]] int better(int here, const cpu_set_t& allowed, int first) const {
    if (!is_core(here)) return here;
    int best = here;
    for (int i = 0; i < CPU_SETSIZE; ++i) {
      const int core = (first + i) % CPU_SETSIZE;
      if (CPU_ISSET(static_cast<std::size_t>(core), &allowed) && on(core) < on(best)) best = core;
    }
    return best;
  }

private:
  [[nodiscard]] static bool is_core(int core) { return core >= 0 && core < CPU_SETSIZE; }
  [[nodiscard]] std::uint16_t on(int core) const { return others_[static_cast<std::size_t>(core)]; }
  std::array<std::uint16_t, CPU_SETSIZE> others_{};
};

} // namespace parc::client
