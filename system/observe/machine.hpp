// SPDX-License-Identifier: BSD-3-Clause
// The machine that figures are taken on, in words beside them, and what else takes its cores meanwhile.
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>

namespace parc {

struct Machine {
  std::string processor; // as the system names it; empty: it does not
  unsigned cores = 0;
  std::uint64_t memory = 0; // bytes
  std::string system;       // "Linux 6.1.0"
};

[[nodiscard]] Machine this_machine();
// "2 cores (Some Processor), 24 GiB, Linux 6.1.0"
[[nodiscard]] std::string text_of(const Machine& machine);

// How many threads ran or wanted to, on average over the last minute. Negative: the system does not say.
[[nodiscard]] double load_average();

// Since it was started, of all its cores together: how long they have worked, and how long others under the
// same hypervisor had them. None: the system does not say.
struct CoreTimes {
  std::chrono::nanoseconds worked{}, stolen{};
};
[[nodiscard]] std::optional<CoreTimes> core_times();

} // namespace parc
