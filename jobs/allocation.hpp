// SPDX-License-Identifier: BSD-3-Clause
// The hosts that a batch system has given to the job which this process is part of. Each batch system is a
// source, known by its variables: Slurm, PBS and Torque, Grid Engine.
#pragma once

#include "jobs/launcher.hpp"
#include "jobs/placement.hpp"

#include <functional>
#include <optional>

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

// Slurm's lists: "a[1-3,07],b" is a1, a2, a3, a07, b, and "4(x2),3" is 4, 4, 3.
[[nodiscard]] Result<std::vector<std::string>> expand_node_list(std::string_view text);
[[nodiscard]] Result<std::vector<std::uint32_t>> expand_counts(std::string_view text);

} // namespace parc
