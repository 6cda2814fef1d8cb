// SPDX-License-Identifier: BSD-3-Clause
// The hosts that parc up has brought up, as a hostfile beside the kernel of this host: what other commands
// are about when they name none. It is that kernel's: without it, it counts for nothing.
#pragma once

#include "jobs/placement.hpp"

#include <span>
#include <string>
#include <vector>

namespace parc::tools {

// In the order in which they were named first; none: nobody has brought up any.
[[nodiscard]] std::vector<HostSlots> up_hosts(const std::string& runtime_dir);
[[nodiscard]] Result<void> add_up_hosts(const std::string& runtime_dir, std::span<const HostSlots> hosts);
[[nodiscard]] Result<void> remove_up_hosts(const std::string& runtime_dir,
                                           std::span<const std::string> names);

} // namespace parc::tools
