// SPDX-License-Identifier: BSD-3-Clause
// Files that name hosts, as Open MPI and MPICH have them, and batch systems: a host a line, and what stands
// behind it.
//
//   # a comment
//   node1 slots=4 max_slots=8      Open MPI
//   node2:4                        MPICH
//   node3                          one slot; a host on several lines has the slots of all
//   node4 wdir=~/run prefix=/opt/parc env=NAME=VALUE      what is that host's own (host_place.hpp)
#pragma once

#include "jobs/placement.hpp"

namespace parc {

// Errors name the line, and `name` as that of the file.
[[nodiscard]] Result<std::vector<HostSlots>> parse_hostfile(std::string_view text, std::string_view name);
[[nodiscard]] Result<std::vector<HostSlots>> read_hostfile(const std::string& path);

// As a line of such a file.
[[nodiscard]] std::string to_line(const HostSlots& host);

// $PE_HOSTFILE of Grid Engine: a host, its slots, its queue and its processors in each line.
[[nodiscard]] Result<std::vector<HostSlots>> read_grid_engine_hostfile(const std::string& path);

} // namespace parc
