// SPDX-License-Identifier: BSD-3-Clause
#include "tools/parc/hosts/hosts.hpp"

#include "jobs/allocation.hpp"
#include "jobs/hostfile.hpp"

#include <algorithm>
#include <cstdlib>

namespace parc::tools {
namespace {

Result<std::optional<Allocation>> own_allocation() {
  return find_allocation([](const char* name) { return std::getenv(name); });
}

} // namespace

Result<std::vector<HostSlots>> named_hosts(const NamedHosts& named) {
  std::string hosts = named.hosts;
  std::ranges::replace(hosts, '\n', ','); // by which the parser joins those of each --host
  if (!hosts.empty()) return parse_hosts(hosts);
  if (!named.hostfile.empty()) return read_hostfile(named.hostfile);
  PARC_TRY(allocation, own_allocation());
  return allocation ? std::move(allocation->hosts) : std::vector<HostSlots>();
}

Prefixes prefixes_of(const std::vector<HostSlots>& hosts) {
  Prefixes prefixes;
  for (const HostSlots& host : hosts)
    if (!host.place.prefix.empty()) prefixes[host.name] = host.place.prefix;
  return prefixes;
}

Launcher launcher_to(std::span<const std::string> hosts, const std::string& ssh) {
  if (!ssh.empty()) return by_ssh(ssh);
  const auto allocation =
      own_allocation(); // one that makes no sense: named_hosts() has said so where it counts
  const bool in_job = allocation && allocation.value();
  if (const Launcher* const way = in_job ? way_to(*allocation.value(), hosts) : nullptr) return *way;
  return by_ssh("ssh");
}

} // namespace parc::tools
