// SPDX-License-Identifier: BSD-3-Clause
#include "tools/parc/hosts.hpp"

#include "jobs/allocation.hpp"
#include "jobs/hostfile.hpp"

#include <cstdlib>

namespace parc::tools {

Result<std::vector<HostSlots>> named_hosts(const std::string& hosts, const std::string& hostfile) {
  if (!hosts.empty()) return parse_hosts(hosts);
  if (!hostfile.empty()) return read_hostfile(hostfile);
  PARC_TRY(allocation, find_allocation([](const char* name) { return std::getenv(name); }));
  return allocation ? std::move(allocation->hosts) : std::vector<HostSlots>();
}

} // namespace parc::tools
