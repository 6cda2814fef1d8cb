// SPDX-License-Identifier: BSD-3-Clause
#include "tools/parc/hosts.hpp"

#include "jobs/allocation.hpp"
#include "jobs/hostfile.hpp"

#include <cstdlib>

namespace parc::tools {
namespace {

Result<std::optional<Allocation>> own_allocation() {
  return find_allocation([](const char* name) { return std::getenv(name); });
}

} // namespace

Result<std::vector<HostSlots>> named_hosts(const std::string& hosts, const std::string& hostfile) {
  if (!hosts.empty()) return parse_hosts(hosts);
  if (!hostfile.empty()) return read_hostfile(hostfile);
  PARC_TRY(allocation, own_allocation());
  return allocation ? std::move(allocation->hosts) : std::vector<HostSlots>();
}

Result<Launcher> launcher_to(const std::string& hosts, const std::string& hostfile, const std::string& ssh) {
  if (!ssh.empty()) return by_ssh(ssh);
  if (hosts.empty() && hostfile.empty()) {
    PARC_TRY(allocation, own_allocation());
    if (allocation && allocation->launcher) return std::move(*allocation->launcher);
  }
  return by_ssh("ssh");
}

} // namespace parc::tools
