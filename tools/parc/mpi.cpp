// SPDX-License-Identifier: BSD-3-Clause
// parc mpi: how an MPI program is run over parc, said or done. Open MPI moves its messages through libfabric
// where it is asked to; the provider answers only when it is named.
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

// Where libparc-fi.so was built or installed beside this program; empty: libfabric's own directory has it.
std::string provider_directory() {
  std::array<char, 4096> self{};
  const ssize_t length = readlink("/proc/self/exe", self.data(), self.size() - 1);
  if (length <= 0) return {};
  const std::string path(self.data(), static_cast<std::size_t>(length));
  const std::string prefix = path.substr(0, path.rfind('/', path.rfind('/') - 1));
  if (prefix == "/usr") return {};
  for (const char* const way : {"/lib/libfabric", "/" PARC_LIBDIR "/libfabric"})
    if (access((prefix + way + "/libparc-fi.so").c_str(), R_OK) == 0) return prefix + way;
  return {};
}

std::vector<std::string> line_of(const std::string& launcher, const std::string& directory) {
  std::vector<std::string> words{launcher};
  for (const auto& [name, value] : settings) words.insert(words.end(), {"--mca", name, value});
  if (!directory.empty()) words.insert(words.end(), {"-x", "FI_PROVIDER_PATH=" + directory});
  return words;
}

void print(const std::vector<std::string>& line, const std::string& directory) {
  for (const std::string& word : line) fmt::print("{} ", word);
  fmt::print("./app\n\nThe same in the environment, for mpirun and srun alike:\n\nexport");
  for (const auto& [name, value] : settings) fmt::print(" OMPI_MCA_{}={}", name, value);
  if (!directory.empty()) fmt::print(" FI_PROVIDER_PATH={}", directory);
  fmt::print("\n");
}

} // namespace

int mpi(std::vector<std::string> words) {
  const int failed = words.empty() ? status_failure : status_run_failed;
  const Launcher launcher = find_launcher();
  if (launcher.name.empty()) {
    fmt::print(
        stderr,
        "parc: there is no Open MPI here to run programs over parc with{}; install it (openmpi-bin), or put "
        "its mpirun into PATH\n",
        launcher.other.empty() ? "" : fmt::format(" (mpirun is \"{}\")", launcher.other));
    return failed;
  }
  const std::string directory = provider_directory();
  std::vector<std::string> line = line_of(launcher.name, directory);
  if (words.empty()) {
    print(line, directory);
    return 0;
  }
  line.insert(line.end(), words.begin(), words.end());
  std::vector<char*> argv;
  for (std::string& word : line) argv.push_back(word.data());
  argv.push_back(nullptr);
  execvp(argv[0], argv.data());
  fmt::print(stderr, "parc: cannot run {}: {}\n", launcher.name, std::strerror(errno));
  return failed;
}

} // namespace parc::tools
