// SPDX-License-Identifier: BSD-3-Clause
#include "jobs/installed.hpp"

#include <algorithm>
#include <cerrno>
#include <filesystem>
#include <initializer_list>

namespace parc {
namespace {

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
constexpr bool has_early_library = false;
#else
constexpr bool has_early_library = true;
#endif

// In one of these directories, as seen from that of this program: where it is installed, and where it was
// built.
std::string find_beside(std::initializer_list<const char*> directories, std::string_view name) {
  std::error_code failure;
  const auto self = std::filesystem::read_symlink("/proc/self/exe", failure).parent_path();
  for (const char* directory : directories) {
    const auto file = (self / directory / name).lexically_normal();
    if (!failure && std::filesystem::exists(file, failure)) return file.string();
  }
  return {};
}

} // namespace

std::string installed_library(std::string_view name) {
  return find_beside({PARC_LIB_FROM_BIN, "../lib"}, name);
}

std::string installed_program(std::string_view name) {
  return find_beside({PARC_LIBEXEC_FROM_BIN, "../libexec/parc"}, name);
}

Result<std::string> provider_path() {
  const std::string provider = installed_library("libfabric/libparc-fi.so");
  if (provider.empty())
    return error(
        ENOENT,
        "parc's provider for libfabric (libparc-fi.so), by which MPI finds parc, is not installed here; "
        "build it with scripts/setup release, where libfabric-dev is installed, or install "
        "libparc-fabric1");
  return provider.starts_with("/usr/lib") ? std::string() : provider.substr(0, provider.rfind('/'));
}

Result<void> preload_early_library(std::vector<std::string>& environment) {
  constexpr std::string_view preload = "LD_PRELOAD=";
  const std::string library = installed_library("libparc-early.so.0");
  if (library.empty() && !has_early_library) return success();
  if (library.empty())
    return error(ENOENT, "libparc-early.so, which early release needs, is not installed on this host");
  const auto others =
      std::ranges::find_if(environment, [&](const auto& each) { return each.starts_with(preload); });
  std::string value = std::string(preload) + library;
  if (others == environment.end())
    environment.push_back(std::move(value));
  else
    *others = value + ":" + others->substr(preload.size());
  return success();
}

} // namespace parc
