// SPDX-License-Identifier: BSD-3-Clause
// What a guard costs on this machine: M(N) and I of HUNT 2005, section 5.1, measured once. A wait that is
// about to be released polls so long before: then it has never cost more than twice what the better of the
// two, waiting and guarding, would have, whatever the network's round trip and bandwidth (its RTT and G) are.
#pragma once

#include <chrono>
#include <cstddef>

namespace parc::client {

struct GuardCost {
  std::chrono::nanoseconds fixed;    // mprotect twice, a fault and its handler
  std::chrono::nanoseconds per_page; // of mprotect, twice, and of the page's first use after it
  std::chrono::nanoseconds wake;     // until a thread that sleeps is back

  // Of a touch that has to wait.
  [[nodiscard]] std::chrono::nanoseconds of_wake() const { return fixed + wake; }
  [[nodiscard]] std::chrono::nanoseconds of(std::size_t pages) const {
    return fixed + static_cast<std::chrono::nanoseconds::rep>(pages) * per_page;
  }
};

// Faults must be caught already (fault.hpp).
[[nodiscard]] GuardCost measure_guard_cost();

} // namespace parc::client
