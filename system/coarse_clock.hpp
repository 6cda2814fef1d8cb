// SPDX-License-Identifier: BSD-3-Clause
// A clock for how long something has been waited for: milliseconds of the host's CLOCK_MONOTONIC, as coarse
// as its tick, which cost a few nanoseconds to read. It wraps after 49 days: only differences mean anything.
#pragma once

#include <cstdint>
#include <ctime>

namespace parc {

[[nodiscard]] inline std::uint32_t coarse_ms() {
  timespec time{};
  clock_gettime(CLOCK_MONOTONIC_COARSE, &time);
  return static_cast<std::uint32_t>(time.tv_sec * 1000 + time.tv_nsec / 1'000'000);
}

} // namespace parc
