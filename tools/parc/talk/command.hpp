// SPDX-License-Identifier: BSD-3-Clause
// A command of parc: its name, its help, its options, and what it does. Each is made in the file that does
// it.
#pragma once

#include "control/exit_status.hpp"
#include "system/error.hpp"
#include "system/usage.hpp"

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

namespace parc::tools {

struct Command {
  std::string name, help;
  std::function<void(CLI::App& app)> options; // adds its options to the parser
  std::function<int()> run; // does it, when options are parsed: the exit status; where not 0 it has said why
  // Takes off the words that are not for parc, as those of a program to run: none of them is ever mistaken
  // for an option of ours. Returns what is wrong; empty: nothing.
  std::function<std::string(CLI::App& app, std::vector<std::string>& words)> take_words = {};
  int wrong_words = status_usage; // exit status where the command line makes no sense
};

// The text of an error, and where this process itself has too few descriptors, how it gets more.
[[nodiscard]] std::string in_words(const Error& error);
// The exit status of a command that ended with `status`; of an error, which is printed: status_failure.
[[nodiscard]] int end_with(const Result<int>& status);

// ---- Options that several have

void add_runtime_dir(CLI::App& app, std::string& directory,
                     const std::string& help = "Where the kernel of this host is found");
void add_json(CLI::App& app, bool& json, const std::string& help = "Print JSON");
// The hosts that options name: --hosts and --hostfile. `by_default`, for the help: those meant where none is.
struct NamedHosts {
  std::string hosts;
  std::string hostfile;
  [[nodiscard]] bool any() const { return !hosts.empty() || !hostfile.empty(); }
};
void add_hosts(CLI::App& app, NamedHosts& named, const std::string& by_default);

// Accepts one of these words. The help has them in braces, where the shells' completion finds them.
[[nodiscard]] CLI::Validator one_of(std::vector<std::string> words);

// Accepts what `parse` does, and says its errors.
template <class Value> CLI::Validator parsed_by(Result<Value> (*parse)(const std::string& text)) {
  return CLI::Validator(
      [parse](const std::string& text) {
        const auto value = parse(text);
        return value ? std::string() : value.error().text;
      },
      "", "");
}

// A job's number, in hexadecimal as parc status, ps and PARC_JOB have it; never 0.
[[nodiscard]] Result<std::uint64_t> parse_job(const std::string& text);
[[nodiscard]] Result<int> parse_signal(const std::string& text); // SIGTERM, TERM, term or 15
// How to get to other hosts, as PARC_SSH says; empty: it says nothing.
[[nodiscard]] std::string asked_ssh();

} // namespace parc::tools
