// SPDX-License-Identifier: BSD-3-Clause
// The hosts that a command is about.
#pragma once

#include "jobs/launcher.hpp"
#include "jobs/placement.hpp"
#include "tools/parc/talk/command.hpp"

#include <map>
#include <span>
#include <string>

namespace parc::tools {

// As --hosts or --hostfile say, or whoever has given us hosts; none where nobody has.
[[nodiscard]] Result<std::vector<HostSlots>> named_hosts(const NamedHosts& named);

using Prefixes = std::map<std::string, std::string>; // where parc is installed, by host

// On those whose hostfile says so.
[[nodiscard]] Prefixes prefixes_of(const std::vector<HostSlots>& hosts);

// How to get to these: as whoever has given us hosts does, where they are all among those, or by ssh; by
// `ssh`, where that says more.
[[nodiscard]] Launcher launcher_to(std::span<const std::string> hosts, const std::string& ssh);

} // namespace parc::tools
