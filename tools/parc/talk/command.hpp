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
  std::function<void(CLI::App& app)> options; // adds them
  std::function<int()> run; // once they are parsed: an exit status, and why is said where not 0
  // Takes off the words that are somebody else's, as those of a program to run: none of them is ever mistaken
  // for an option of ours. Returns what is wrong.
  std::function<std::string(CLI::App& app, std::vector<std::string>& words)> take_words = {};
  int wrong_words = status_usage; // exit status where the command line makes no sense
};

// The text of an error, and where this process itself has too little of something, how it gets more.
[[nodiscard]] std::string in_words(const Error& error);
// For commands: the status that it ended with; or its error is told.
[[nodiscard]] int end_with(const Result<int>& status);

// ---- Options that several have

void add_runtime_dir(CLI::App& app, std::string& directory,
                     const std::string& help = "Where the kernel of this host is found");
void add_json(CLI::App& app, bool& json, const std::string& help = "Print JSON");
// --hosts and --hostfile. `by_default`: which are meant where none is named.
struct NamedHosts {
  std::string hosts;
  std::string hostfile;
  [[nodiscard]] bool any() const { return !hosts.empty() || !hostfile.empty(); }
};
void add_hosts(CLI::App& app, NamedHosts& named, const std::string& by_default);

// The help has the words in braces, where the shells' completion finds them.
[[nodiscard]] CLI::Validator one_of(std::vector<std::string> words);

// As the parser wants it, of what `parse` takes.
template <class Value> CLI::Validator parsed_by(Result<Value> (*parse)(const std::string& text)) {
  return CLI::Validator(
      [parse](const std::string& text) {
        const auto value = parse(text);
        return value ? std::string() : value.error().text;
      },
      "", "");
}

// As parc status, ps and PARC_JOB name one.
[[nodiscard]] Result<std::uint64_t> parse_job(const std::string& text);
[[nodiscard]] Result<int> parse_signal(const std::string& text); // SIGTERM, TERM, term or 15
// How to get to other hosts, as PARC_SSH says; empty: it says nothing.
[[nodiscard]] std::string asked_ssh();

} // namespace parc::tools
