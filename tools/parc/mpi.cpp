// SPDX-License-Identifier: BSD-3-Clause
// parc mpi: how an MPI program is run over parc, said or done. Open MPI moves its messages through libfabric
// where it is asked to; the provider answers only when it is named.
#include "jobs/installed.hpp"
#include "tools/parc/commands.hpp"

#include <array>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <fmt/format.h>
#include <memory>
#include <string_view>
#include <unistd.h>
#include <utility>

namespace parc::tools {
namespace {

// "osc pt2pt": one-sided windows as messages; the others of Open MPI 4.1 need a transport of their own.
constexpr std::array<std::pair<const char*, const char*>, 4> settings{
    {{"pml", "cm"}, {"mtl", "ofi"}, {"mtl_ofi_provider_include", "parc"}, {"osc", "pt2pt"}}};

// What a launcher says of itself; empty: there is none.
std::string version_of(const std::string& launcher) {
  const std::unique_ptr<FILE, int (*)(FILE*)> said(popen((launcher + " --version 2>/dev/null").c_str(), "r"),
                                                   pclose);
  std::string text;
  std::array<char, 256> part{};
  while (said && std::fgets(part.data(), part.size(), said.get())) text += part.data();
  return text;
}

struct Launcher {
  std::string name;  // empty: there is no Open MPI here
  std::string other; // what else answers as mpirun
};

// Debian calls it mpirun.openmpi, too, where another MPI is the first.
Launcher find_launcher() {
  Launcher found;
  for (const char* const name : {"mpirun", "mpirun.openmpi"}) {
    const std::string version = version_of(name);
    if (version.find("Open MPI") != version.npos) {
      found.name = name;
      return found;
    }
    if (found.other.empty()) found.other = version.substr(0, version.find('\n'));
  }
  return found;
}

// The variables that the ranks need besides those of Open MPI's own settings.
Result<std::vector<std::string>> variables_for(const MpiOptions& options) {
  std::vector<std::string> variables;
  const std::string provider = installed_library("libfabric/libparc-fi.so");
  if (!provider.empty() && !provider.starts_with("/usr/lib")) // libfabric looks there by itself
    variables.push_back("FI_PROVIDER_PATH=" + provider.substr(0, provider.rfind('/')));
  if (options.early_release.empty()) return variables;
  variables.push_back("PARC_EARLY_RELEASE=" + options.early_release);
  if (const char* const others = getenv("LD_PRELOAD"); others != nullptr && *others != 0)
    variables.push_back(std::string("LD_PRELOAD=") + others);
  if (!preload_early_library(variables))
    return error(ENOENT,
                 "libparc-early.so, which --early-release needs, is not installed beside this program");
  return variables;
}

std::vector<std::string> line_of(const std::string& launcher, const std::vector<std::string>& variables) {
  std::vector<std::string> words{launcher};
  for (const auto& [name, value] : settings) words.insert(words.end(), {"--mca", name, value});
  for (const std::string& variable : variables) words.insert(words.end(), {"-x", variable});
  return words;
}

void print(const std::vector<std::string>& line, const std::vector<std::string>& variables) {
  for (const std::string& word : line) fmt::print("{} ", word);
  fmt::print(
      "./app\n\nThe same in the environment, for mpirun ./app and srun --mpi=pmix ./app alike:\n\nexport");
  for (const auto& [name, value] : settings) fmt::print(" OMPI_MCA_{}={}", name, value);
  for (const std::string& variable : variables) fmt::print(" {}", variable);
  fmt::print("\n");
}

} // namespace

int mpi(const MpiOptions& options) {
  const int failed = options.words.empty() ? status_failure : status_run_failed;
  const Launcher launcher = find_launcher();
  if (launcher.name.empty()) {
    fmt::print(
        stderr,
        "parc: there is no Open MPI here to run programs over parc with{}; install it (openmpi-bin), or put "
        "its mpirun into PATH\n",
        launcher.other.empty() ? "" : fmt::format(" (mpirun is \"{}\")", launcher.other));
    return failed;
  }
  const auto variables = variables_for(options);
  if (!variables) {
    fmt::print(stderr, "parc: {}\n", variables.error().text);
    return failed;
  }
  std::vector<std::string> line = line_of(launcher.name, variables.value());
  if (options.words.empty()) {
    print(line, variables.value());
    return 0;
  }
  line.insert(line.end(), options.words.begin(), options.words.end());
  std::vector<char*> argv;
  for (std::string& word : line) argv.push_back(word.data());
  argv.push_back(nullptr);
  execvp(argv[0], argv.data());
  fmt::print(stderr, "parc: cannot run {}: {}\n", launcher.name, std::strerror(errno));
  return failed;
}

} // namespace parc::tools
