// SPDX-License-Identifier: BSD-3-Clause
// parc doctor: what on this host, and on the way to others, keeps parc from working, or from working well.
#include "jobs/placement.hpp"
#include "protocol/wire.hpp"
#include "shm/layout.hpp"
#include "system/runtime_dir.hpp"
#include "tools/parc/doctor/commands.hpp"
#include "tools/parc/doctor/doctor_checks.hpp"
#include "tools/parc/doctor/doctor_far.hpp"
#include "tools/parc/hosts/ask_hosts.hpp"
#include "tools/parc/hosts/hosts.hpp"
#include "tools/parc/hosts/pairs.hpp"
#include "tools/parc/hosts/up_hosts.hpp"
#include "tools/parc/screen/display.hpp"

#include <algorithm>
#include <iostream>
#include <memory>
#include <nlohmann/json.hpp>
#include <ranges>

namespace parc::tools {
namespace diagnosis {
namespace {

constexpr int json_schema = 1;

struct DoctorOptions {
  bool json = false;
  bool here = false; // nobody else is looked for
  NamedHosts named;
  std::vector<std::string> at; // NAME=ADDRESS:PORT
  std::string ssh;             // and its options; empty: ssh, and only where hosts are named
  std::string runtime_dir;
};

struct Asked {
  std::vector<std::string> hosts;
  std::vector<Target> at;
  Prefixes prefixes;
  std::string ssh; // empty: nobody is asked what it finds
};

Result<std::vector<Target>> targets_in(const std::vector<std::string>& texts) {
  std::vector<Target> targets;
  for (const std::string& text : texts) {
    PARC_TRY(target, parse_target(text));
    targets.push_back(std::move(target));
  }
  return targets;
}

Result<Asked> understand(const DoctorOptions& options) {
  if (options.here && options.named.any())
    return error(EINVAL, "--here looks at no other host than those of --at: leave out the others");
  Asked asked;
  bool is_given = options.named.any();
  if (!options.here && (is_given || options.at.empty())) {
    PARC_TRY(hosts, named_hosts(options.named));
    if (hosts.empty()) {
      hosts = up_hosts(options.runtime_dir);
      is_given = !hosts.empty();
    }
    asked.prefixes = prefixes_of(hosts);
    for (HostSlots& host : hosts) asked.hosts.push_back(std::move(host.name));
  }
  PARC_TRY(at, targets_in(options.at));
  asked.at = std::move(at);
  asked.ssh = options.ssh;
  if (asked.ssh.empty() && is_given) asked.ssh = asked_ssh().empty() ? "ssh" : asked_ssh();
  return asked;
}

struct ThisHost {
  Root root;
  User user = this_user();
  ProcessFacts self = read_process(root, "self");
  KernelFacts kernel;
  ProcessFacts of_kernel;
  SettingsFacts settings;
  std::size_t ranks = 0;

  explicit ThisHost(const std::string& runtime_dir) : kernel(read_kernel(runtime_dir)) {
    if (kernel.process != 0) of_kernel = read_process(root, std::to_string(kernel.process));
    settings = read_settings(runtime_dir, of_kernel.known ? kernel.process : 0);
    if (settings.cannot_start == kernel.runtime_dir_refused)
      settings.cannot_start.clear(); // it is said already
    if (kernel.runs && kernel.counters) ranks = kernel.counters->sessions.size();
  }
  [[nodiscard]] Settings known_settings() const { return settings.settings.value_or(Settings()); }
  [[nodiscard]] std::string scheduling() const {
    return kernel.runs && kernel.counters ? kernel.counters->scheduling : "";
  }
};

std::vector<Group> look_at_this_host(const ThisHost& host, const Path& path) {
  const Settings settings = host.known_settings();
  const Who who{.user = host.user,
                .process = host.of_kernel.known ? host.of_kernel : host.self,
                .is_kernel = host.of_kernel.known};
  const LimitFacts limits = read_limits(host.root, host.user);
  SessionFacts session = read_session(host.root, host.user);
  session.cross_memory_error = try_cross_memory();

  std::vector<Group> groups{{"kernel", check_kernel(host.kernel, host.of_kernel)}};
  const auto add = [](Group& group, Findings findings) {
    std::ranges::move(findings, std::back_inserter(group.findings));
  };
  add(groups[0], check_settings(host.settings, read_key_facts(settings.key_file), host.user));
  Group& of_limits = groups.emplace_back(Group{"limits", check_segments(limits, who.process.cores.size())});
  add(of_limits, check_process_limits(limits, who));
  Group& of_cores =
      groups.emplace_back(Group{"cores", {check_realtime(who, settings.realtime, host.scheduling())}});
  add(of_cores, check_cores(limits, who, host.ranks));
  groups.push_back({"TCP", check_tcp(read_tcp(host.root), settings, path, host.user)});
  Group& of_session = groups.emplace_back(
      Group{"session", check_logout(session, host.user, host.of_kernel, host.kernel.runtime_dir)});
  add(of_session, check_isolation(session, host.user, host.self, host.of_kernel, settings));
  return groups;
}

// Where that host may reach our kernel: as settings say, or at our address on the way there.
std::string way_back(const ThisHost& host, const Settings& settings, const Reach& reach) {
  const std::string& address = settings.advertise.empty() ? reach.from : settings.advertise;
  if (!host.kernel.runs || !host.kernel.counters || address.empty()) return {};
  return fmt::format("{}={}", settings.name,
                     place_of(address, static_cast<std::uint16_t>(host.kernel.counters->port)));
}

std::vector<Group> look_at_others(const ThisHost& host, const Asked& asked, const std::vector<Reach>& reaches,
                                  const Pairs& pairs) {
  const Settings settings = host.known_settings();
  Group hosts{"hosts", {check_listening(settings, reaches)}};
  for (const Reach& each : reaches) hosts.findings.push_back(check_reach(each));
  std::ranges::move(check_pairs(pairs), std::back_inserter(hosts.findings));
  std::vector<Group> groups{std::move(hosts)};
  if (asked.ssh.empty()) return groups;
  std::vector<std::string> back;
  for (const Reach& each : reaches) back.push_back(way_back(host, settings, each));
  Prefixes prefixes = asked.prefixes;
  for (const auto& [name, prefix] : settings.prefixes) prefixes.try_emplace(name, prefix);
  const auto answers = ask_hosts(asked.ssh, reaches, std::move(prefixes), back);
  for (const FarAnswer& answer : answers)
    groups.push_back({"on host " + answer.host, check_far(answer, our_versions(), settings.name)});
  if (!answers.empty() && !host.kernel.runs)
    groups[0].findings.push_back({"back", Level::information,
                                  "no kernel runs here, so nobody tried to reach this host",
                                  "parcd --detach, and then parc doctor again"});
  return groups;
}

std::size_t count(const std::vector<Group>& groups, Level level) {
  std::size_t found = 0;
  for (const Group& group : groups)
    found += static_cast<std::size_t>(std::ranges::count(group.findings, level, &Finding::level));
  return found;
}

Style style_of(Level level) {
  if (level < Level::warning) return Style::plain;
  return level == Level::warning ? Style::warning : Style::bad;
}

void add(std::vector<Line>& lines, const Finding& finding, const std::string& group, std::size_t columns) {
  constexpr std::size_t behind_level = 11;
  const std::string_view then = finding.level < Level::warning ? "; " : "; to mend it: ";
  const std::string text =
      fmt::format("  {:<8} {}{}: {}{}{}", name(finding.level), group.empty() ? "" : group + ", ",
                  finding.check, finding.found, finding.mend.empty() ? "" : then, finding.mend);
  for (std::string& line : wrapped(text, columns, behind_level))
    lines.push_back({std::move(line), style_of(finding.level)});
}

std::string counted(std::size_t number, std::string_view what) {
  return fmt::format("{} {}{}", number, what, number == 1 ? "" : "s");
}

// What is to be mended first, then the rest of each group, and how many of all at the end.
void print(const std::vector<Group>& groups) {
  constexpr std::size_t most_columns = 100;
  const Display display = display_of(stdout);
  const std::size_t columns = display.terminal ? std::min(display.columns, most_columns) : most_columns;
  std::vector<Line> lines;
  const auto begin = [&lines](const std::string& title) {
    if (!lines.empty()) lines.push_back({});
    lines.push_back({title, Style::title});
  };
  std::size_t wells = 0;
  for (const Level level : {Level::problem, Level::warning})
    for (const Group& group : groups)
      for (const Finding& finding : group.findings) {
        if (finding.level != level) continue;
        if (lines.empty()) begin("to mend");
        add(lines, finding, group.name, columns);
      }
  for (const Group& group : groups) {
    const auto is_well = [](const Finding& finding) { return finding.level < Level::warning; };
    if (std::ranges::none_of(group.findings, is_well)) continue;
    begin(group.name);
    for (const Finding& finding : group.findings) {
      if (!is_well(finding)) continue;
      add(lines, finding, {}, columns);
      ++wells;
    }
  }
  const std::size_t problems = count(groups, Level::problem), warnings = count(groups, Level::warning);
  lines.push_back({});
  lines.push_back({fmt::format("{}, {}, and {} well or to note", counted(problems, "problem"),
                               counted(warnings, "warning"), counted(wells, "check")),
                   style_of(problems != 0   ? Level::problem
                            : warnings != 0 ? Level::warning
                                            : Level::ok)});
  show(lines, stdout);
}

nlohmann::json to_json(const std::vector<Group>& groups, const std::string& host, double began) {
  nlohmann::json json{{"schema", json_schema},
                      {"host", host},
                      {"version", our_versions().parc},
                      {"segment", shm::layout_version},
                      {"wire", our_versions().wire},
                      {"clock", {{"began", began}, {"ended", seconds_of(WallClock::now())}}},
                      {"problems", count(groups, Level::problem)},
                      {"warnings", count(groups, Level::warning)},
                      {"findings", nlohmann::json::array()}};
  for (const Group& group : groups)
    for (const Finding& finding : group.findings)
      json["findings"].push_back({{"group", group.name},
                                  {"check", finding.check},
                                  {"level", name(finding.level)},
                                  {"found", finding.found},
                                  {"mend", finding.mend}});
  return json;
}

// A kernel that runs here finds its way to them now, if there is one; what there is its links show. And they
// find theirs to each other.
std::vector<AskedHost> link_to(const std::vector<std::string>& hosts, const std::string& runtime_dir) {
  std::vector<tool::HostToAsk> all;
  for (const std::string& host : hosts) all.push_back({.name = host});
  const auto dir = find_runtime_dir(runtime_dir);
  const auto process = dir ? running_kernel(dir.value()) : Result<std::optional<pid_t>>(std::nullopt);
  if (all.empty() || !process || !process.value()) return {};
  auto answers = parc::tools::ask_hosts(runtime_dir, all, {}, false, true);
  return answers ? std::move(answers).value() : std::vector<AskedHost>();
}

// Where the kernel knows better than the settings, that is looked at.
void look_where_linked(const std::vector<AskedHost>& answers, const Settings& settings,
                       std::vector<Target>& targets) {
  for (Target& target : targets) {
    const auto answer = std::ranges::find(answers, target.host, &AskedHost::host);
    if (!target.linked || target.way != LinkWay::Direct || answer == answers.end() ||
        settings.hosts.contains(target.host))
      continue;
    const auto at = parse_target(fmt::format("{}={}", target.host, answer->address));
    if (!at) continue;
    target.address = at.value().address;
    target.port = at.value().port;
    target.named = true;
  }
}

int examine(const DoctorOptions& options) {
  const double began = seconds_of(WallClock::now());
  const auto asked = understand(options);
  if (!asked) {
    std::cerr << "parc: " << asked.error().text << '\n';
    return asked.error().code == EINVAL ? status_usage : status_failure;
  }
  const auto answers = link_to(asked.value().hosts, options.runtime_dir);
  const ThisHost host(options.runtime_dir);
  std::vector<Target> targets = asked.value().at;
  if (!options.here || !targets.empty())
    targets = find_targets(host.known_settings(), host.kernel.counters, asked.value().hosts, targets);
  look_where_linked(answers, host.known_settings(), targets);
  if (!asked.value().ssh.empty()) find_by_ssh(asked.value().ssh, host.known_settings(), targets);
  const auto reaches = reach(targets, std::chrono::seconds(host.known_settings().connect_timeout_s));
  auto groups = look_at_this_host(host, longest_path(reaches));
  std::ranges::move(look_at_others(host, asked.value(), reaches, pairs_of(answers)),
                    std::back_inserter(groups));
  if (options.json) {
    std::cout << to_json(groups, host.known_settings().name, began)
                     .dump(2, ' ', false, nlohmann::json::error_handler_t::replace)
              << '\n';
  } else {
    print(groups);
  }
  return count(groups, Level::problem) == 0 ? 0 : status_failure;
}

} // namespace
} // namespace diagnosis

Command doctor_command() {
  const auto options = std::make_shared<diagnosis::DoctorOptions>();
  return {
      .name = "doctor",
      .help = "Say what on this host, and on the way to others, is in the way",
      .options =
          [options](CLI::App& app) {
            add_json(app, options->json);
            app.add_flag("--here", options->here, "Look at no other host than those of --at");
            add_hosts(app, options->named,
                      "those of parc up, or of [hosts], which are reached but do not try to reach this one");
            app.add_option("--at", options->at,
                           "Where a host listens, in place of what [hosts] says: NAME=ADDRESS:PORT; may be "
                           "repeated")
                ->expected(1)
                ->multi_option_policy(CLI::MultiOptionPolicy::TakeAll);
            app.add_option("--ssh", options->ssh, "How to get to the hosts: ssh, and options of it");
            add_runtime_dir(app, options->runtime_dir);
          },
      .run = [options] { return diagnosis::examine(*options); }};
}

} // namespace parc::tools
