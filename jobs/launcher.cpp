// SPDX-License-Identifier: BSD-3-Clause
#include "jobs/launcher.hpp"

#include <sstream>

namespace parc {

std::string shell_word(std::string_view word) {
  std::string text = "'";
  for (const char c : word) text += c == '\'' ? std::string("'\\''") : std::string(1, c);
  return text + "'";
}

// The other side's shell reads the words once more.
std::vector<std::string> by_ssh(std::string_view ssh, const std::string& host,
                                const std::vector<std::string>& words) {
  std::vector<std::string> command;
  std::istringstream parts{std::string(ssh)};
  for (std::string part; parts >> part;) command.push_back(std::move(part));
  for (const char* option : {"-o", "BatchMode=yes", "-o", "ConnectTimeout=10"}) command.emplace_back(option);
  command.push_back(host);
  std::string line;
  for (const std::string& word : words) line += (line.empty() ? "" : " ") + shell_word(word);
  command.push_back(std::move(line));
  return command;
}

} // namespace parc
