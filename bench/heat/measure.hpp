// SPDX-License-Identifier: BSD-3-Clause
// Measures a scene on hosts: calibrates the work, then runs every variant at every granularity, repeats
// interleaved, so that a machine that changes its speed changes all of them.
#pragma once

#include "bench/heat/hosts.hpp"
#include "bench/heat/progress.hpp"
#include "bench/heat/scene.hpp"
#include "system/error.hpp"

namespace parc::heat::demo {

// The plate that is made for looking at.
constexpr std::size_t field_points = 160;
constexpr std::size_t field_columns(std::size_t ranks) {
  return field_points / ranks * ranks;
}

[[nodiscard]] Result<Results> measure(const Scene& scene, const Hosts& hosts, Progress& progress);

} // namespace parc::heat::demo
