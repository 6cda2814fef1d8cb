// SPDX-License-Identifier: BSD-3-Clause
#include "tools/parc/talk/command.hpp"

#include "jobs/placement.hpp"
#include "system/environment.hpp"

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <csignal>
#include <cstdlib>
#include <fmt/ranges.h>
#include <iostream>

namespace parc::tools {

std::string in_words(const Error& error) {
  return error.text + (error.code == EMFILE ? "; allow more descriptors (ulimit -n)" : "");
}

int end_with(const Result<int>& status) {
  if (status) return status.value();
  std::cout.flush();
  std::cerr << "parc: " << in_words(status.error()) << '\n';
  return status_failure;
}

std::string asked_ssh() {
  const char* const named = std::getenv(env_ssh);
  return named != nullptr ? named : "";
}

void add_runtime_dir(CLI::App& app, std::string& directory, const std::string& help) {
  app.add_option("--runtime-dir", directory, help);
}

void add_json(CLI::App& app, bool& json, const std::string& help) {
  app.add_flag("--json", json, help);
}

void add_hosts(CLI::App& app, NamedHosts& named, const std::string& by_default) {
  auto* const hosts = app.add_option("-H,--host,--hosts", named.hosts,
                                     "The hosts, separated by commas; default: " + by_default)
                          ->check(
                              [](const std::string& text) {
                                const auto parsed = parse_hosts(text);
                                return parsed || text.empty() ? std::string() : parsed.error().text;
                              },
                              "", "")
                          ->multi_option_policy(CLI::MultiOptionPolicy::Join);
  app.add_option("-f,--hostfile,--machinefile", named.hostfile, "A file with a host a line")->excludes(hosts);
}

CLI::Validator one_of(std::vector<std::string> words) {
  const std::string shown = fmt::format("{{{}}}", fmt::join(words.begin(), words.end(), ","));
  return CLI::Validator(
      [words = std::move(words)](const std::string& text) -> std::string {
        if (std::ranges::find(words, text) != words.end()) return {};
        return fmt::format("{} is none of {}", quote(text), fmt::join(words.begin(), words.end(), ", "));
      },
      shown, "");
}

Result<std::uint64_t> parse_job(const std::string& text) {
  std::uint64_t job = 0;
  const auto [end, failure] = std::from_chars(text.data(), text.data() + text.size(), job, 16);
  if (text.empty() || failure != std::errc{} || end != text.data() + text.size() || job == 0)
    return error(
        EINVAL, "\"{}\" is no job; parc status shows those of this host, and PARC_JOB is a rank's own", text);
  return job;
}

Result<int> parse_signal(const std::string& text) {
  std::string wanted(text.size(), ' ');
  std::ranges::transform(text, wanted.begin(),
                         [](unsigned char c) { return static_cast<char>(std::toupper(c)); });
  if (wanted.starts_with("SIG")) wanted.erase(0, 3);
  for (int number = 1; number < NSIG; ++number) {
    const char* const name = sigabbrev_np(number);
    if (wanted == fmt::to_string(number) || (name != nullptr && wanted == name)) return number;
  }
  return error(EINVAL, "\"{}\" is no signal; write a name as TERM, or a number", text);
}

} // namespace parc::tools
