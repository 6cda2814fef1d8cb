// SPDX-License-Identifier: BSD-3-Clause
#include "jobs/launcher.hpp"

#include <sstream>

namespace parc {
namespace {

// The word behind `key` at the beginning of a line.
std::string value_of(std::string_view key, const std::string& text) {
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) {
    std::istringstream words(line);
    std::string first, second;
    if (words >> first >> second && first == key) return second;
  }
  return {};
}

} // namespace

std::string shell_word(std::string_view word) {
  std::string text = "'";
  for (const char c : word) text += c == '\'' ? std::string("'\\''") : std::string(1, c);
  return text + "'";
}

Launcher by_ssh(std::string_view ssh) {
  Launcher::Words first;
  std::istringstream parts{std::string(ssh)};
  for (std::string part; parts >> part;) first.push_back(std::move(part));
  if (first.empty()) first.emplace_back("ssh"); // PARC_SSH is set to blanks
  for (const char* option : {"-o", "BatchMode=yes", "-o", "ConnectTimeout=10"}) first.emplace_back(option);
  const auto command = [first](const std::string& host, const Launcher::Words& words) {
    Launcher::Words all = first;
    all.push_back(host);
    std::string line; // the other side's shell reads the words once more
    for (const std::string& word : words) line += (line.empty() ? "" : " ") + shell_word(word);
    all.push_back(std::move(line));
    return all;
  };
  const auto question = [first](const std::string& host) {
    Launcher::Words all = first;
    all.insert(all.end(), {"-G", host});
    return all;
  };
  return {.command = command, .question = question, .address = [](const std::string& said) {
            return value_of("hostname", said);
          }};
}

// All that the job has on that host, whatever the variables of the job say of its other steps.
Launcher by_srun() {
  const auto command = [](const std::string& host, const Launcher::Words& words) {
    Launcher::Words all{
        "srun",    "--quiet",         "--nodes=1",  "--ntasks=1",      "--ntasks-per-node=1", "--overlap",
        "--mem=0", "--cpu-bind=none", "--mpi=none", "--job-name=parc", "--nodelist=" + host,  "--"};
    all.insert(all.end(), words.begin(), words.end());
    return all;
  };
  const auto question = [](const std::string& host) {
    return Launcher::Words{"sinfo", "--noheader", "--nodes=" + host, "--format=address %o"};
  };
  return {.command = command,
          .question = question,
          .address = [](const std::string& said) { return value_of("address", said); },
          .keeps = true};
}

} // namespace parc
