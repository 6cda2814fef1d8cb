// SPDX-License-Identifier: BSD-3-Clause
// What single runs measured, and the table's rows that follow from them. Invariant: a row is made only when
// everything it is compared with has been measured.
#pragma once

#include "bench/heat/scene.hpp"

#include <compare>
#include <map>

namespace parc::heat::demo {

// One run of one variant: the slowest rank's median step.
struct Sample {
  double step_ms = 0;
  double calculation_ms = 0;
  bool correct = true;
  bool relay_late = false;
};

struct Measured {
  std::size_t granularity = 0; // its place in the scene
  std::string variant;
  std::optional<bool> realtime;
  auto operator<=>(const Measured&) const = default;
};

using Samples = std::map<Measured, std::vector<Sample>>;

// The first granularity with the same halo: the exchange alone is measured once for all of them.
[[nodiscard]] std::size_t first_with_halo(const Scene& scene, std::size_t granularity);

[[nodiscard]] std::vector<Row> make_rows(const Scene& scene, const std::vector<int>& work,
                                         const Samples& samples, bool emulated);

} // namespace parc::heat::demo
