// SPDX-License-Identifier: BSD-3-Clause
// A timed run of the time steps of one rank, what it says about it, and whether its strip is right.
#pragma once

#include "examples/heat/strip.hpp"
#include "system/error.hpp"

#include <functional>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>

namespace parc::heat {

struct Length {
  int warm_up = 2; // steps before the clock starts: connections and caches get warm
  int steps = 20;
};

struct Timing {
  double step_ms = 0; // median of the timed steps, as the other two
  double step_ms_min = 0;
  double step_ms_max = 0;
  double calculation_ms = 0; // the part of a step that calculates
  double cpu_ms = 0;         // processor time of this process per step
};

// One time step: calculates and exchanges. The strip is advanced after it.
using Step = std::function<Result<void>(Strip&)>;
[[nodiscard]] Result<Timing> run(Strip& strip, const Step& step, const Length& length);

struct Difference {
  std::size_t column, point; // of the whole plate; column 0 is the left rim
  double here, sequential;
};
// Calculates the whole plate again on one core, and compares the strip with its part of it bit for bit.
[[nodiscard]] std::optional<Difference> compare_with_sequential(const Strip& strip, int steps);

// The strip's place in a file that holds the whole plate, column after column, without the rims: all ranks
// write into the same file.
[[nodiscard]] Result<void> write_field(const Strip& strip, const std::string& path);

} // namespace parc::heat
