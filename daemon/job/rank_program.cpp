// SPDX-License-Identifier: BSD-3-Clause
#include "daemon/job/rank_program.hpp"

#include <algorithm>
#include <array>
#include <pwd.h>
#include <unistd.h>

namespace parc::daemon {
namespace {

// Where the homes are the same, so may be what lies there: these begin with the caller's then.
constexpr std::array<std::string_view, 2> paths{"PATH", "LD_LIBRARY_PATH"};

std::string value_in(const std::vector<std::string>& environment, std::string_view name) {
  const auto found = std::ranges::find(environment, name, name_of_variable);
  return found == environment.end() ? std::string() : found->substr(std::min(name.size() + 1, found->size()));
}

// As the system has it: a kernel that a system manager has started has none in its environment.
const std::string& home_of_user() {
  static const std::string home = [] {
    const passwd* const user = getpwuid(geteuid());
    return std::string(user != nullptr ? user->pw_dir : "/");
  }();
  return home;
}

std::string home_in(const std::vector<std::string>& environment) {
  std::string home = value_in(environment, "HOME");
  return home.empty() ? home_of_user() : home;
}

// The elements of both, those of the first before; an empty one would be the working directory.
std::string joined(std::string_view first, std::string_view second) {
  std::vector<std::string_view> all;
  for (std::string_view rest : {first, second})
    while (!rest.empty()) {
      const std::string_view element = rest.substr(0, rest.find(':'));
      rest.remove_prefix(std::min(element.size() + 1, rest.size()));
      if (!element.empty() && std::ranges::find(all, element) == all.end()) all.push_back(element);
    }
  std::string text;
  for (const std::string_view element : all) text.append(text.empty() ? "" : ":").append(element);
  return text;
}

std::vector<std::string> world_of(const Program& program, bool started_here,
                                  const std::vector<std::string>& own) {
  if (started_here) return program.here;
  std::vector<std::string> world;
  const std::string callers = value_in(program.here, "HOME");
  const bool same_home = !callers.empty() && callers == home_in(own);
  for (const std::string& variable : own)
    if (is_variable(variable) && is_of_site(name_of_variable(variable))) world.push_back(variable);
  for (const std::string_view name : paths) {
    if (!same_home || value_in(program.here, name).empty()) continue;
    set_variables(world,
                  {std::string(name) + "=" + joined(value_in(program.here, name), value_in(own, name))});
  }
  return world;
}

// What lies in the caller's home, in this one; empty: it does not.
std::string in_home(const std::string& directory, const std::vector<std::string>& callers,
                    const std::string& home) {
  const std::string theirs = value_in(callers, "HOME");
  if (theirs.size() < 2 || theirs == home || !(directory + "/").starts_with(theirs + "/")) return {};
  return home + directory.substr(theirs.size());
}

} // namespace

Program with_place(Program program, const HostPlace& place) {
  if (!place.wdir.empty()) program.directory = place.wdir;
  for (const std::string& variable : place.env)
    set_variables(program.environment, {variable}); // the last counts
  for (Program::App& app : program.apps) {
    if (!place.wdir.empty()) app.directory.clear();
    std::erase_if(app.variables, [&](const std::string& variable) {
      return std::ranges::find(place.env, name_of_variable(variable), name_of_variable) != place.env.end();
    });
  }
  return program;
}

std::vector<std::string> own_environment() {
  std::vector<std::string> all;
  for (char** variable = environ; *variable != nullptr; ++variable) all.emplace_back(*variable);
  return all;
}

Program program_of_ranks(Program program, bool started_here, const std::vector<std::string>& own,
                         const std::string& libraries) {
  std::vector<std::string>& environment = program.environment;
  std::vector<std::string> world = world_of(program, started_here, own);
  // Whatever home ranks are told of, paths lie in that of who they belong to.
  const std::string home = home_in(started_here && !value_in(world, "HOME").empty() ? world : own);
  if (!started_here && value_in(world, "HOME").empty()) set_variables(world, {"HOME=" + home});
  set_variables(world, environment);
  environment = std::move(world);
  if (const std::string_view name = paths[1]; !libraries.empty())
    set_variables(environment, {std::string(name) + "=" + joined(value_in(environment, name), libraries)});
  program.directory_otherwise = in_home(program.directory, program.here, home);
  program.directory = with_home(program.directory, home);
  program.arguments.front() = with_home(program.arguments.front(), home);
  program.here.clear();
  return program;
}

} // namespace parc::daemon
