// SPDX-License-Identifier: BSD-3-Clause
#include "jobs/program.hpp"

#include "system/frames.hpp"
#include "system/observe/trace.hpp"

#include <algorithm>
#include <array>
#include <cerrno>
#include <sys/resource.h>

namespace parc {
namespace {

constexpr std::array<std::string_view, 10> given_names{"PATH", "HOME",    "LANG",  "LD_LIBRARY_PATH", "TERM",
                                                       "USER", "LOGNAME", "SHELL", "TMPDIR",          "TZ"};
constexpr std::array<std::string_view, 3> given_prefixes{"LC_", "OMP_", "PARC_"};
// Every rank has its own; those of a rank that starts a job are not handed down.
constexpr std::array<std::string_view, 10> own_names{
    "PARC_RANK",  "PARC_SIZE",        "PARC_LOCAL_RANK", "PARC_JOB",    "PARC_PIPES",
    "PARC_HOSTS", "PARC_RUNTIME_DIR", "PARC_KERNEL",     "PARC_PARENT", trace::environment};

Error malformed() {
  return error(EPROTO, "the description of the program to start makes no sense");
}

} // namespace

bool is_given_to_ranks(std::string_view name) {
  if (std::ranges::find(own_names, name) != own_names.end()) return false;
  return std::ranges::find(given_names, name) != given_names.end() ||
         std::ranges::any_of(given_prefixes,
                             [name](std::string_view prefix) { return name.starts_with(prefix); });
}

std::string encode_program(const Program& program, nlohmann::json& message) {
  message["arguments"] = program.arguments.size();
  message["umask"] = program.umask;
  message["input"] = program.input;
  message["binds"] = program.binds ? 1 : 0;
  auto& limits = message["limits"] = nlohmann::json::array();
  for (const auto& limit : program.limits) {
    limits.push_back(limit.resource);
    limits.push_back(limit.soft);
    limits.push_back(limit.hard);
  }
  std::string bytes;
  const auto add = [&bytes](const std::string& text) { (bytes += text) += '\0'; };
  add(program.directory);
  for (const auto& argument : program.arguments) add(argument);
  for (const auto& variable : program.environment) add(variable);
  return bytes;
}

Result<Program> decode_program(const nlohmann::json& message, std::string_view bytes) {
  if (bytes.size() > max_program_bytes)
    return error(E2BIG, "arguments and environment have {} bytes, and may have {}; set fewer variables",
                 bytes.size(), max_program_bytes);
  const auto arguments = number_in(message, "arguments", max_program_bytes);
  const auto umask = number_in(message, "umask", 0777), input = number_in(message, "input", Program::no_rank);
  const auto limits = numbers_in(message, "limits", std::size_t{3} * RLIM_NLIMITS);
  const auto binds = number_in(message, "binds", 1);
  if (!arguments || *arguments == 0 || !umask || !input || !binds || !limits || limits->size() % 3 != 0)
    return malformed();

  Program program;
  program.umask = static_cast<std::uint32_t>(*umask);
  program.input = *input;
  program.binds = *binds == 1;
  for (std::size_t i = 0; i < limits->size(); i += 3) {
    if ((*limits)[i] >= RLIM_NLIMITS) return malformed();
    program.limits.push_back({static_cast<std::uint32_t>((*limits)[i]), (*limits)[i + 1], (*limits)[i + 2]});
  }
  std::vector<std::string> texts;
  while (!bytes.empty()) {
    const auto end = bytes.find('\0');
    if (end == bytes.npos) return malformed();
    texts.emplace_back(bytes.substr(0, end));
    bytes.remove_prefix(end + 1);
  }
  if (texts.size() < 1 + *arguments || !texts[0].starts_with('/')) return malformed();
  const auto first = texts.begin() + 1;
  const auto last = first + static_cast<std::ptrdiff_t>(*arguments);
  if (first->empty()) return malformed();
  program.directory = std::move(texts[0]);
  program.arguments.assign(first, last);
  program.environment.assign(last, texts.end());
  return program;
}

} // namespace parc
