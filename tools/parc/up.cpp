// SPDX-License-Identifier: BSD-3-Clause
// parc up and parc down: start and end kernels of other hosts.
#include "system/identity.hpp"
#include "tools/parc/children.hpp"
#include "tools/parc/commands.hpp"
#include "tools/parc/hosts.hpp"
#include "tools/parc/start_hosts.hpp"

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <iostream>

namespace parc::tools {
namespace {

constexpr int no_hosts = EDESTADDRREQ; // the code of that error, which is one of usage

int end_of(const Result<int>& status) {
  const int said = end_with(status);
  return !status && status.error().code == no_hosts ? status_usage : said;
}

Result<std::vector<std::string>> host_names(const UpOptions& options, std::string_view command) {
  PARC_TRY(hosts, named_hosts(options.where.hosts, options.where.hostfile));
  if (hosts.empty())
    return error(no_hosts, "no hosts are named: parc {} --hosts a,b or --hostfile FILE", command);
  std::vector<std::string> names;
  for (HostSlots& host : hosts) names.push_back(std::move(host.name));
  return names;
}

int report(const std::vector<StartedHost>& all) {
  for (const StartedHost& there : all)
    if (there.up())
      std::cout << fmt::format("{}: up at {}, listening on {}\n", there.host, there.address, there.says);
  std::cout.flush();
  for (const StartedHost& there : all)
    if (!there.up()) std::cerr << fmt::format("parc: host {} is not up: {}\n", there.host, there.why);
  return std::ranges::all_of(all, &StartedHost::up) ? 0 : status_failure;
}

Result<int> start(const UpOptions& options) {
  PARC_TRY(hosts, host_names(options, "up"));
  const Launcher launcher = launcher_to(hosts, options.ssh);
  PARC_TRY(all,
           start_hosts(hosts, launcher, options.where.runtime_dir, options.of_parcd, patience_with_children));
  return report(all);
}

// The runtime directory of a batch job is its own, and so is the kernel in it: of this host, too, where that
// is none of the job's.
bool ends_own_kernel(const UpOptions& options, const std::vector<std::string>& hosts) {
  return options.where.hosts.empty() && options.where.hostfile.empty() &&
         std::getenv("PARC_RUNTIME_DIR") == nullptr &&
         std::ranges::find(hosts, short_host_name()) == hosts.end();
}

Result<int> stop_all(const UpOptions& options) {
  PARC_TRY(hosts, host_names(options, "down"));
  const Launcher launcher = launcher_to(hosts, options.ssh);
  const std::vector<std::string> stop = words_of_stop();
  std::vector<Child> children;
  for (const std::string& host : hosts)
    children.push_back({.command = is_this_host(launcher, host) ? stop : launcher.command(host, stop)});
  if (ends_own_kernel(options, hosts)) {
    hosts.push_back(short_host_name());
    children.push_back({.command = stop});
  }
  run_all(children);
  int status = 0;
  for (std::size_t i = 0; i < hosts.size(); ++i) {
    if (const std::string said = last_line(children[i].output); children[i].status == 0) {
      std::cout << fmt::format("{}: {}\n", hosts[i], said);
    } else {
      std::cout.flush();
      std::cerr << fmt::format("parc: host {}: {}\n", hosts[i], why_failed(children[i], "parc stop"));
      status = status_failure;
    }
  }
  return status;
}

} // namespace

int up(const UpOptions& options) {
  return end_of(start(options));
}

int down(const UpOptions& options) {
  return end_of(stop_all(options));
}

} // namespace parc::tools
