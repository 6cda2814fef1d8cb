// SPDX-License-Identifier: BSD-3-Clause
#include "tools/wanlink/emulation.hpp"

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <filesystem>

namespace parc::wanlink {

Result<Paths> present_emulation() {
  const char* dir = std::getenv(dir_variable);
  if (!dir || !*dir)
    return error(
        ENOENT, "there is no emulation here ({} is not set); this command works in what `wanlink run` starts",
        dir_variable);
  Paths paths{dir};
  if (std::error_code failure; !std::filesystem::is_directory(paths.hosts(), failure))
    return error(ENOENT,
                 "there is no emulation in {} (from {}); this command works in what `wanlink run` starts",
                 dir, dir_variable);
  return paths;
}

Result<void> check_host(const Paths& paths, const std::string& name) {
  std::vector<std::string> names;
  std::error_code failure;
  for (const auto& entry : std::filesystem::directory_iterator(paths.hosts(), failure))
    names.push_back(entry.path().filename());
  if (std::ranges::find(names, name) != names.end()) return success();
  std::ranges::sort(names);
  return error(ENOENT, "there is no host \"{}\" in this emulation; its hosts are {}", name,
               fmt::join(names, ", "));
}

} // namespace parc::wanlink
