// SPDX-License-Identifier: BSD-3-Clause
#include "daemon/spawn/spawner_process.hpp"

#include <cerrno>
#include <charconv>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <sys/resource.h>

namespace parc::daemon {
namespace {

Result<std::string> contents_of(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  std::string contents(std::istreambuf_iterator<char>(file), {});
  if (file.bad() || !file.is_open())
    return error(EACCES, "cannot read {} of the program that spawns it", path);
  return contents;
}

std::uint32_t umask_in(const std::string& status) {
  constexpr std::string_view label = "\nUmask:\t";
  std::uint32_t mask = 022;
  if (const auto at = status.find(label); at != status.npos)
    std::from_chars(status.data() + at + label.size(), status.data() + status.size(), mask, 8);
  return mask & 0777;
}

} // namespace

Result<Program> program_like(pid_t process, const std::vector<std::string>& arguments) {
  Program program;
  program.arguments = arguments;
  const std::string own = fmt::format("/proc/{}/", process);
  std::error_code failure;
  program.directory = std::filesystem::read_symlink(own + "cwd", failure).string();
  if (failure)
    return error(failure.value(), "cannot see the working directory of the program that spawns it: {}",
                 failure.message());
  PARC_TRY(status, contents_of(own + "status"));
  program.umask = umask_in(status);
  for (std::uint32_t resource = 0; resource < RLIM_NLIMITS; ++resource) {
    rlimit limit{};
    if (prlimit(process, static_cast<__rlimit_resource>(resource), nullptr, &limit) == 0)
      program.limits.push_back({resource, limit.rlim_cur, limit.rlim_max});
  }
  PARC_TRY(environment, contents_of(own + "environ"));
  for (std::string_view rest = environment; !rest.empty();) {
    const std::string_view variable = rest.substr(0, rest.find('\0'));
    rest.remove_prefix(std::min(variable.size() + 1, rest.size()));
    if (!is_variable(variable)) continue;
    const std::string_view name = name_of_variable(variable);
    if (is_given_to_ranks(name)) program.environment.emplace_back(variable);
    if (is_of_site(name)) program.here.emplace_back(variable);
  }
  return program;
}

} // namespace parc::daemon
