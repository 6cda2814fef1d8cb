// SPDX-License-Identifier: BSD-3-Clause
#include "tools/parc/doctor/doctor_far.hpp"

#include "jobs/launcher.hpp"
#include "protocol/wire.hpp"
#include "tools/parc/hosts/start_hosts.hpp"
#include "tools/parc/talk/children.hpp"

#include <cmath>
#include <nlohmann/json.hpp>

namespace parc::tools::diagnosis {
namespace {

constexpr const char* script = R"(exec parc doctor --json --here "$@")";

constexpr double noticeable_s = 1; // in logs, whose lines have whole seconds

Level level_of(const std::string& word) {
  for (const Level level : {Level::ok, Level::information, Level::warning})
    if (word == name(level)) return level;
  return Level::problem;
}

// Their clock less ours lies between what it was when they began and when they ended: a message takes more
// than no time either way.
Finding check_clock(const FarAnswer& answer, double began, double ended) {
  const double most = began - answer.asked, least = ended - answer.answered;
  const double offset = (most + least) / 2, uncertainty = std::abs(most - least) / 2;
  if (std::abs(offset) <= uncertainty)
    return {"clock", Level::ok,
            fmt::format("as here, give or take {:.3f} s", std::abs(offset) + uncertainty)};
  Finding finding{"clock", Level::ok, fmt::format("{:+.3f} s, give or take {:.3f} s", offset, uncertainty)};
  if (std::abs(offset) - uncertainty < noticeable_s) return finding;
  finding.level = Level::warning;
  finding.found += ": log lines of the two hosts cannot be put side by side (traces do not mind)";
  finding.mend = fmt::format("set it by the network, on {}: timedatectl set-ntp true", answer.host);
  return finding;
}

Finding check_versions(const std::string& host, const Versions& theirs, const Versions& ours) {
  Finding finding{"version", Level::ok, fmt::format("parc {}, as here", theirs.parc)};
  if (theirs == ours) return finding;
  finding.level = theirs.wire == ours.wire ? Level::warning : Level::problem;
  finding.found = fmt::format("parc {} (wire {}), and here parc {} (wire {})", theirs.parc, theirs.wire,
                              ours.parc, ours.wire);
  finding.mend = theirs.wire == ours.wire ? "they can talk; to have one version, upgrade the older one"
                                          : fmt::format("kernels of the two refuse each other: upgrade {}",
                                                        theirs.wire < ours.wire ? host : "this host");
  return finding;
}

Finding read_finding(const nlohmann::json& finding) {
  return {.check = finding.value("check", ""),
          .level = level_of(finding.value("level", "")),
          .found = finding.value("found", ""),
          .mend = finding.value("mend", "")};
}

Findings read_answer(const FarAnswer& answer, const nlohmann::json& json, const Versions& ours,
                     const std::string& self) {
  Findings back, here, others;
  here.push_back(
      check_versions(answer.host, {.parc = json.value("version", ""), .wire = json.value("wire", 0U)}, ours));
  const auto& clock = json.at("clock");
  here.push_back(check_clock(answer, clock.at("began").get<double>(), clock.at("ended").get<double>()));
  for (const auto& each : json.at("findings")) {
    Finding finding = read_finding(each);
    if (finding.check == "to " + self)
      back.push_back(std::move(finding));
    else if (finding.level >= Level::warning)
      others.push_back(std::move(finding));
  }
  back.insert(back.end(), here.begin(), here.end());
  back.insert(back.end(), others.begin(), others.end());
  return back;
}

} // namespace

double seconds_of(WallClock::time_point time) {
  return std::chrono::duration<double>(time.time_since_epoch()).count();
}

Versions our_versions() {
  return {.parc = PARC_VERSION, .wire = protocol::wire_version};
}

std::vector<FarAnswer> ask_hosts(const std::string& ssh, const std::vector<Reach>& hosts, Prefixes prefixes,
                                 const std::vector<std::string>& back) {
  std::vector<Child> children;
  for (std::size_t i = 0; i < hosts.size(); ++i) {
    std::vector<std::string> words;
    if (!back[i].empty()) words = {"--at", back[i]};
    const std::string& host = hosts[i].target.host;
    children.push_back({.command = by_ssh(ssh).command(host, beside_parc(script, prefixes[host], words))});
  }
  run_all(children);
  std::vector<FarAnswer> answers;
  for (std::size_t i = 0; i < hosts.size(); ++i) {
    answers.push_back({.host = hosts[i].target.host,
                       .asked = seconds_of(children[i].started),
                       .answered = seconds_of(children[i].ended),
                       .output = std::move(children[i].output),
                       .why = why_failed(children[i], "parc doctor")});
  }
  return answers;
}

void find_by_ssh(const std::string& ssh, const Settings& settings, std::vector<Target>& targets) {
  const Launcher launcher = by_ssh(ssh);
  std::vector<Child> children;
  std::vector<Target*> asked;
  for (Target& target : targets) {
    if (target.linked || target.address != target.host || settings.hosts.contains(target.host)) continue;
    asked.push_back(&target);
    children.push_back({.command = launcher.question(target.host)});
  }
  run_all(children);
  for (std::size_t i = 0; i < asked.size(); ++i)
    if (std::string address = launcher.address(children[i].output); !address.empty())
      asked[i]->address = std::move(address);
}

Findings check_far(const FarAnswer& answer, const Versions& ours, const std::string& self) {
  const auto json = nlohmann::json::parse(answer.output, nullptr, false);
  if (json.is_object()) {
    try {
      return read_answer(answer, json, ours, self);
    } catch (const nlohmann::json::exception& failure) {
      return {{"login", Level::warning,
               fmt::format("parc doctor of {} says what this one does not understand ({})", answer.host,
                           failure.what()),
               "install one version of parc on both"}};
    }
  }
  return {{"login", Level::warning,
           fmt::format("parc doctor could not be run there, so the way back was not tried: {}", answer.why),
           fmt::format(
               "see that \"ssh {} parc --version\" answers without a password (parc itself needs no ssh); or "
               "run parc doctor there",
               answer.host)}};
}

} // namespace parc::tools::diagnosis
