// SPDX-License-Identifier: BSD-3-Clause
#include "jobs/program.hpp"

#include "system/environment.hpp"

#include <algorithm>
#include <array>

namespace parc {
namespace {

constexpr std::array<std::string_view, 3> given_names{"LANG", "TERM", "TZ"};
constexpr std::array<std::string_view, 3> given_prefixes{"LC_", "OMP_", "PARC_"};
constexpr std::array<std::string_view, 7> site_names{"PATH",    "HOME",  "LD_LIBRARY_PATH", "USER",
                                                     "LOGNAME", "SHELL", "TMPDIR"};
constexpr std::string_view site_prefix = "XDG_";
// Every rank has its own; those of a rank that starts a job are not handed down.
constexpr std::array<std::string_view, 10> own_names{env_rank,   env_size,  env_local_rank,  env_job,
                                                     env_pipes,  env_hosts, env_runtime_dir, env_kernel,
                                                     env_parent, env_trace};

} // namespace

std::size_t Program::app_of(std::uint32_t rank) const {
  const auto behind = std::ranges::upper_bound(apps, rank, {}, &App::first_rank);
  return apps.empty() ? 0 : static_cast<std::size_t>(behind - apps.begin()) - 1;
}

Program Program::of_app(std::size_t app) const {
  Program program = *this;
  if (apps.empty()) return program;
  program.apps.clear();
  const App& own = apps[app];
  program.arguments = own.arguments;
  if (!own.directory.empty()) program.directory = own.directory;
  set_variables(program.environment, own.variables);
  return program;
}

bool is_variable(std::string_view text) {
  const auto equals = text.find('=');
  return equals != text.npos && equals != 0;
}

std::string_view name_of_variable(std::string_view variable) {
  return variable.substr(0, variable.find('='));
}

void set_variables(std::vector<std::string>& environment, const std::vector<std::string>& variables) {
  std::erase_if(environment, [&](const std::string& theirs) {
    return std::ranges::any_of(variables, [&](const std::string& ours) {
      return name_of_variable(ours) == name_of_variable(theirs);
    });
  });
  environment.insert(environment.end(), variables.begin(), variables.end());
}

bool is_given_to_ranks(std::string_view name) {
  if (std::ranges::find(own_names, name) != own_names.end()) return false;
  return std::ranges::find(given_names, name) != given_names.end() ||
         std::ranges::any_of(given_prefixes,
                             [name](std::string_view prefix) { return name.starts_with(prefix); });
}

bool is_of_site(std::string_view name) {
  return name.starts_with(site_prefix) || std::ranges::find(site_names, name) != site_names.end();
}

} // namespace parc
