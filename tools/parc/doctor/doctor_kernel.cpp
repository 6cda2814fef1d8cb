// SPDX-License-Identifier: BSD-3-Clause
// The kernel of this host, its runtime directory, its settings and its key.
#include "tools/parc/doctor/doctor_checks.hpp"
#include "tools/parc/talk/unwell.hpp"

#include <cstring>

namespace parc::tools::diagnosis {
namespace {

constexpr const char* start_again = "parc stop, then parcd --detach";

// A sentence of parcd's own says what to do behind its last semicolon.
Finding refused(std::string check, const std::string& sentence, const char* otherwise) {
  const auto semicolon = sentence.rfind("; ");
  if (semicolon == sentence.npos) return {std::move(check), Level::problem, sentence, otherwise};
  return {std::move(check), Level::problem, sentence.substr(0, semicolon), sentence.substr(semicolon + 2)};
}

Finding check_runtime_dir(const KernelFacts& facts) {
  if (!facts.runtime_dir_refused.empty())
    return refused("runtime directory", facts.runtime_dir_refused, "choose another with --runtime-dir");
  if (facts.runtime_dir.empty()) return {"runtime directory", Level::ok, "none yet: parcd makes it"};
  return {"runtime directory", Level::ok, facts.runtime_dir + ", ours alone, on a local file system"};
}

Finding check_alive(const KernelFacts& facts, const ProcessFacts& process) {
  if (!facts.lock_refused.empty()) return {"kernel", Level::problem, facts.lock_refused, "parc clean"};
  if (!facts.runs && facts.counters)
    return {"kernel", Level::warning, fmt::format("dead (it was process {})", facts.counters->pid),
            "parcd --detach starts another, and parc clean removes what it left"};
  if (!facts.runs)
    return {"kernel", Level::information, "none runs", "parc run starts one, and so does parcd --detach"};
  if (facts.process == 0 || !process.known)
    return {"kernel", Level::problem, unwell::is_elsewhere, unwell::if_elsewhere};
  const auto words = fmt::format("process {}", facts.process);
  if (process.state == 'T' || process.state == 't')
    return {"kernel", Level::problem, fmt::format("{} {}", words, unwell::is_stopped),
            unwell::if_stopped(facts.process)};
  if (!facts.answers)
    return {"kernel", Level::problem, fmt::format("{} {}", words, unwell::is_silent),
            unwell::if_silent(facts.process)};
  return {"kernel", Level::ok,
          facts.counters ? fmt::format("{} of host {}, listening on {}", words, facts.counters->host,
                                       facts.counters->listens)
                         : words};
}

Finding check_version(const KernelFacts& facts, const ProcessFacts& process) {
  const std::string& theirs = facts.counters->program;
  if (theirs != facts.parc_version)
    return {"version", Level::problem,
            fmt::format(
                "parcd {} runs, and this is parc {}: programs and jobs of one may be refused by the other",
                theirs, facts.parc_version),
            fmt::format("install one version, and start its kernel: {}", start_again)};
  if (process.replaced)
    return {"version", Level::warning,
            fmt::format("parcd {}, whose program was replaced since it started", theirs), start_again};
  return {"version", Level::ok, fmt::format("parcd {} and parc alike", theirs)};
}

Finding check_key(const KeyFacts& key, const User& user) {
  if (key.path == "-") return {"key", Level::ok, "handed over when the kernel was started"};
  if (key.error != 0)
    return {"key", Level::problem,
            fmt::format("{} cannot be looked at: {}", key.path, std::strerror(key.error)),
            fmt::format("ls -ld {} and the directories above", key.path)};
  if (!key.there)
    return {"key", Level::information, fmt::format("none yet: {} is made by the first parcd", key.path),
            "all hosts need the same one: copy it from one that has it, before parcd starts here"};
  if (!key.is_file)
    return {"key", Level::problem, fmt::format("{} is not a file", key.path),
            fmt::format("rm -r {}", key.path)};
  if (key.owner != user.id)
    return {"key", Level::problem,
            fmt::format("{} belongs to user {}, not to {}", key.path, key.owner, user.name),
            fmt::format("chown {} {}, as root; or key_file = in parcd.toml", user.name, key.path)};
  if ((key.mode & 077) != 0)
    return {
        "key", Level::problem,
        fmt::format("{} has mode {:04o}, so others can read it, and no parcd starts with it", key.path,
                    key.mode),
        fmt::format("chmod 600 {} (if somebody may have read it: remove it on all hosts, and copy a new one)",
                    key.path)};
  return {"key", Level::ok,
          fmt::format("{}, mode {:04o}, ours{}", key.path, key.mode,
                      key.of_relay ? "; a relay key: this host relays, and no job runs on it" : "")};
}

} // namespace

Findings check_kernel(const KernelFacts& facts, const ProcessFacts& process) {
  Findings findings{check_runtime_dir(facts)};
  if (!facts.runtime_dir_refused.empty()) return findings;
  findings.push_back(check_alive(facts, process));
  if (facts.runs && facts.counters) findings.push_back(check_version(facts, process));
  return findings;
}

Findings check_settings(const SettingsFacts& facts, const KeyFacts& key, const User& user) {
  if (!facts.settings) return {refused("settings", facts.refused, "mend that line; parcd -t checks it")};
  Findings findings{check_key(key, user)};
  const bool said =
      findings[0].level == Level::problem && facts.cannot_start.find(key.path) != std::string::npos;
  if (facts.cannot_start.empty() || said)
    findings.insert(findings.begin(), {"settings", Level::ok, "as parcd -T prints them"});
  else
    findings.insert(findings.begin(), refused("settings", facts.cannot_start, "parcd -t checks it again"));
  return findings;
}

} // namespace parc::tools::diagnosis
