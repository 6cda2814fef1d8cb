// SPDX-License-Identifier: BSD-3-Clause
// The hosts that a batch system has given to the job which this process is part of. Each batch system is a
// source, known by its variables: Slurm, PBS and Torque, Grid Engine.
#pragma once

#include "jobs/launcher.hpp"
#include "jobs/placement.hpp"

#include <functional>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace parc {

struct Allocation {
  std::string source; // for sentences: "job 12 of Slurm"
  std::vector<HostSlots> hosts;
  std::optional<Launcher> launcher; // how that batch system gets to them; none: it has no way of its own
};

// nullptr: it is not set. As getenv.
using Lookup = std::function<const char*(const char* name)>;

// None: this is no batch job. Errors: its variables or files make no sense.
[[nodiscard]] Result<std::optional<Allocation>> find_allocation(const Lookup& variable);

// How its batch system gets to these hosts; nullptr: one of them is none of its hosts, or it has no way.
[[nodiscard]] const Launcher* way_to(const Allocation& allocation, std::span<const std::string> hosts);

} // namespace parc
