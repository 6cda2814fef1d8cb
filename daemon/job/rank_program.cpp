// SPDX-License-Identifier: BSD-3-Clause
#include "daemon/job/rank_program.hpp"

#include <algorithm>
#include <pwd.h>
#include <unistd.h>

namespace parc::daemon {
namespace {

constexpr std::string_view library_path = "LD_LIBRARY_PATH";

std::string_view name_of(std::string_view variable) {
  return variable.substr(0, variable.find('='));
}

std::string* find(std::vector<std::string>& environment, std::string_view name) {
  const auto found = std::ranges::find(environment, name, name_of);
  return found == environment.end() ? nullptr : &*found;
}

std::string home_in(std::vector<std::string>& environment) {
  if (const std::string* const home = find(environment, "HOME")) return home->substr(5);
  const passwd* const user = getpwuid(geteuid()); // a kernel that a system manager has started
  return user != nullptr ? user->pw_dir : "/";
}

} // namespace

Program with_place(Program program, const HostPlace& place) {
  if (!place.wdir.empty()) program.directory = place.wdir;
  for (const std::string& variable : place.env) {
    std::string* const known = find(program.environment, name_of(variable));
    if (known != nullptr)
      *known = variable;
    else
      program.environment.push_back(variable);
  }
  return program;
}

Program program_of_ranks(Program program, bool started_here, const std::vector<std::string>& own,
                         const std::string& libraries) {
  std::vector<std::string>& environment = program.environment;
  for (const std::string& variable : started_here ? program.here : own)
    if (is_of_site(name_of(variable)) && find(environment, name_of(variable)) == nullptr)
      environment.push_back(variable);
  program.here.clear();
  if (!libraries.empty()) {
    if (std::string* const path = find(environment, library_path))
      *path += ":" + libraries;
    else
      environment.push_back(std::string(library_path) + "=" + libraries);
  }
  const std::string home = home_in(environment);
  program.directory = with_home(program.directory, home);
  program.arguments.front() = with_home(program.arguments.front(), home);
  return program;
}

} // namespace parc::daemon
