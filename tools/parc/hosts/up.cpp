// SPDX-License-Identifier: BSD-3-Clause
// parc up and parc down: start and end kernels of other hosts.
#include "system/environment.hpp"
#include "system/identity.hpp"
#include "system/start_kernel.hpp"
#include "tools/parc/hosts/commands.hpp"
#include "tools/parc/hosts/hosts.hpp"
#include "tools/parc/hosts/pairs.hpp"
#include "tools/parc/hosts/start_hosts.hpp"
#include "tools/parc/hosts/up_hosts.hpp"
#include "tools/parc/talk/children.hpp"

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdlib>
#include <iostream>
#include <memory>

namespace parc::tools {
namespace {

constexpr int wrong_usage = EDESTADDRREQ; // the code of an error of usage

struct UpOptions {
  NamedHosts named;
  std::string runtime_dir;           // of this host's kernel
  std::string ssh = asked_ssh();     // and its options; empty: as the batch job does, or ssh
  std::vector<std::string> of_parcd; // options of the kernels that are started
};

void add_options(CLI::App& app, UpOptions& options) {
  add_hosts(app, options.named, "those of the batch job");
  app.add_option("--ssh", options.ssh, "How to get there: ssh, and options of it (PARC_SSH)");
  add_runtime_dir(app, options.runtime_dir);
}

int end_of(const Result<int>& status) {
  const int said = end_with(status);
  return !status && status.error().code == wrong_usage ? status_usage : said;
}

Error no_hosts(std::string_view command) {
  return error(wrong_usage, "no hosts are named: parc {} --hosts a,b or --hostfile FILE", command);
}

std::vector<std::string> names_of(const std::vector<HostSlots>& hosts) {
  std::vector<std::string> names;
  for (const HostSlots& host : hosts) names.push_back(host.name);
  return names;
}

// What other commands are about from now on.
Result<void> remember(const UpOptions& options, std::vector<HostSlots> hosts,
                      const std::vector<StartedHost>& all) {
  std::erase_if(hosts, [&](HostSlots& host) {
    const auto there = std::ranges::find(all, host.name, &StartedHost::host);
    if (there == all.end() || !there->up()) return true;
    host.place.prefix = there->prefix; // parc down does not ask for it
    return false;
  });
  return add_up_hosts(options.runtime_dir, hosts);
}

int report(const std::vector<StartedHost>& all, bool with_options) {
  for (const StartedHost& there : all)
    if (there.up())
      std::cout << fmt::format(
          "{}: up at {}{}, listening on {}{}\n", there.host, there.address,
          there.way == "ssh"     ? ", reached through ssh"
          : there.way == "relay" ? ", relayed"
                                 : "",
          there.says,
          with_options && there.ran ? " (it ran before, with settings of its own: parc down ends it)" : "");
  const Pairs pairs = pairs_of(all);
  if (!pairs.summary.empty()) std::cout << pairs.summary << '\n';
  std::cout.flush();
  for (const StartedHost& there : all)
    if (!there.up()) std::cerr << fmt::format("parc: host {} is not up: {}\n", there.host, there.why);
  for (const std::string& problem : pairs.problems) std::cerr << fmt::format("parc: {}\n", problem);
  return std::ranges::all_of(all, &StartedHost::up) && pairs.problems.empty() ? 0 : status_failure;
}

// Also where kernels run that will never see them.
Result<void> check_options_of_parcd(const std::vector<std::string>& options) {
  if (options.empty()) return success();
  constexpr std::array<std::string_view, 7> ours{"runtime-dir", "detach",   "announce", "version",
                                                 "help",        "key-file", "name"};
  for (const std::string& word : options) {
    const auto hyphens = std::min(word.find_first_not_of('-'), word.size());
    const std::string_view name = std::string_view(word).substr(hyphens, word.find('=') - hyphens);
    const bool letters = hyphens == 1 && !name.empty() && name.find_first_not_of("tTh") == name.npos;
    if (letters || (hyphens != 0 && std::ranges::find(ours, name) != ours.end()))
      return error(wrong_usage, "{} is nothing for the kernels that parc up starts", word);
  }
  std::vector<std::string> words{parcd_near(path_of_this_program()), "-T"};
  words.insert(words.end(), options.begin(), options.end());
  std::vector<Child> asked{Child{.command = words}};
  run_all(asked);
  if (asked.front().status == status_usage)
    return error(wrong_usage, "{}", why_failed(asked.front(), "parcd -T"));
  return success();
}

Result<int> start(const UpOptions& options) {
  PARC_TRY(named, named_hosts(options.named));
  if (named.empty()) return no_hosts("up");
  PARC_TRY(check_options_of_parcd(options.of_parcd));
  const std::vector<std::string> hosts = names_of(named);
  const Launcher launcher = launcher_to(hosts, options.ssh);
  PARC_TRY(all, start_hosts(hosts, launcher, options.runtime_dir, prefixes_of(named), options.of_parcd,
                            patience_with_children, true));
  const int status = report(all, !options.of_parcd.empty());
  PARC_TRY(remember(options, std::move(named), all));
  return status;
}

// The runtime directory of a batch job is its own, and so is the kernel in it: of this host, too, where that
// is none of the job's.
bool ends_own_kernel(const UpOptions& options, const std::vector<std::string>& hosts) {
  return options.runtime_dir.empty() && std::getenv(env_runtime_dir) == nullptr &&
         std::ranges::find(hosts, short_host_name()) == hosts.end();
}

Result<int> stop_all(const UpOptions& options) {
  PARC_TRY(named, named_hosts(options.named));
  const bool is_of_batch_job = !options.named.any() && !named.empty();
  const std::vector<HostSlots> known = up_hosts(options.runtime_dir);
  if (named.empty()) named = known;
  if (named.empty()) return no_hosts("down");
  Prefixes prefixes = prefixes_of(named);
  prefixes.merge(prefixes_of(known));
  if (auto told = prefixes_of_settings(options.runtime_dir)) prefixes.merge(std::move(told).value());
  std::vector<std::string> hosts = names_of(named);
  const Launcher launcher = launcher_to(hosts, options.ssh);
  const std::vector<std::string> stop = words_of_stop(options.runtime_dir);
  std::vector<Child> children;
  for (const std::string& host : hosts)
    children.push_back({.command = is_this_host(launcher, host)
                                       ? stop
                                       : launcher.command(host, words_of_stop_at(prefixes[host]))});
  if (is_of_batch_job && ends_own_kernel(options, hosts)) {
    hosts.push_back(short_host_name());
    children.push_back({.command = stop});
  }
  run_all(children);
  int status = 0;
  std::vector<std::string> ended;
  for (std::size_t i = 0; i < hosts.size(); ++i) {
    if (const std::string said = last_line(children[i].output); children[i].status == 0) {
      std::cout << fmt::format("{}: {}\n", hosts[i], said);
      ended.push_back(hosts[i]);
    } else {
      std::cout.flush();
      std::cerr << fmt::format("parc: cannot end the kernel of host {}: {}{}\n", hosts[i],
                               why_failed(children[i], "parc stop"),
                               way_there(launcher, hosts[i], children[i]));
      status = status_failure;
    }
  }
  PARC_TRY(remove_up_hosts(options.runtime_dir, ended));
  return status;
}

} // namespace

Command up_command() {
  const auto options = std::make_shared<UpOptions>();
  return {.name = "up",
          .help = "Start the kernels of hosts",
          .options =
              [options](CLI::App& app) {
                add_options(app, *options);
                app.footer(
                    "What follows -- are options of the kernels: parc up --hosts a,b -- --listen 0.0.0.0");
              },
          .run = [options] { return end_of(start(*options)); },
          .take_words =
              [options](CLI::App&, std::vector<std::string>& words) {
                const auto dashes = std::ranges::find(words, "--");
                if (dashes == words.end()) return std::string();
                options->of_parcd.assign(dashes + 1, words.end());
                words.erase(dashes, words.end());
                return std::string();
              }};
}

Command down_command() {
  const auto options = std::make_shared<UpOptions>();
  return {.name = "down",
          .help = "End the kernels of hosts",
          .options = [options](CLI::App& app) { add_options(app, *options); },
          .run = [options] { return end_of(stop_all(*options)); }};
}

} // namespace parc::tools
