// SPDX-License-Identifier: BSD-3-Clause
// Where neighbours poll, for who polls on the same core: they hand it to each other with each message, which
// takes the system longer than many looks. The scheduler sees no harm in it where somebody computes on the
// other cores: it counts who wants to run.
#pragma once

#include "system/core.hpp"

#include <array>
#include <cstdint>
#include <sched.h>

namespace parc::client {

class PollingCores {
public:
  // Somebody else polls there, or did so when it was last heard of: it may compute there now.
  void add(int core, bool polls) {
    if (is_core(core)) on(core) += polls ? 2 : 1;
  }
  // Where who polls on `here` has fewer of them about; `here`: nowhere. The search begins at `first`.
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
  [[nodiscard]] std::uint32_t& on(int core) { return others_[static_cast<std::size_t>(core)]; }
  [[nodiscard]] std::uint32_t on(int core) const { return others_[static_cast<std::size_t>(core)]; }
  std::array<std::uint32_t, CPU_SETSIZE> others_{};
};

} // namespace parc::client
