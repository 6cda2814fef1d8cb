// SPDX-License-Identifier: BSD-3-Clause
#include "tools/parc/run/mpi_library.hpp"

#include "system/fd.hpp"
#include "tools/parc/talk/children.hpp"

#include <algorithm>
#include <array>
#include <cstdlib>
#include <cstring>
#include <fcntl.h>
#include <filesystem>
#include <gelf.h>
#include <memory>
#include <optional>
#include <sstream>
#include <string_view>
#include <unistd.h>
#include <vector>

namespace parc::tools {
namespace {

std::string path_of(const std::string& name) {
  if (name.find('/') != name.npos) return name;
  const char* const set = std::getenv("PATH");
  std::error_code failure;
  for (std::string_view left = set != nullptr ? set : ""; !left.empty();) {
    const std::string path = std::string(left.substr(0, left.find(':'))) + "/" + name;
    if (std::filesystem::is_regular_file(path, failure) && access(path.c_str(), X_OK) == 0) return path;
    left.remove_prefix(std::min(left.find(':'), left.size() - 1) + 1);
  }
  return {};
}

// Debian's MPICH has a name of its own. Others have Open MPI's, with the number of MPICH's ABI, which Open
// MPI has left behind.
bool is_of_mpich(std::string_view library) {
  constexpr std::array<std::string_view, 3> of_abi{"libmpi.so.12", "libmpifort.so.12", "libmpicxx.so.12"};
  return library.starts_with("libmpich") || std::ranges::find(of_abi, library) != of_abi.end();
}

// As a program or a library calls them that makes windows, in C, Fortran and C++, or starts programs that
// may.
bool is_of_windows(std::string_view symbol) {
  constexpr std::array<std::string_view, 4> parts{"MPI_Win_", "mpi_win_", "MPI_Comm_spawn", "mpi_comm_spawn"};
  return std::ranges::any_of(parts, [&](std::string_view part) { return symbol.find(part) != symbol.npos; });
}

// What a program or a library is linked with, and whether it calls such functions itself.
struct Linked {
  std::vector<std::string> needed;
  bool of_windows = false;
};

void add_needed(Elf* elf, const GElf_Shdr& header, Elf_Data* data, Linked& linked) {
  GElf_Dyn entry{};
  for (int i = 0; gelf_getdyn(data, i, &entry) != nullptr; ++i) {
    if (entry.d_tag != DT_NEEDED) continue;
    const char* const library = elf_strptr(elf, header.sh_link, entry.d_un.d_val);
    if (library != nullptr) linked.needed.emplace_back(library);
  }
}

void add_calls(Elf* elf, const GElf_Shdr& header, Elf_Data* data, Linked& linked) {
  GElf_Sym symbol{};
  for (int i = 0; !linked.of_windows && gelf_getsym(data, i, &symbol) != nullptr; ++i) {
    if (symbol.st_shndx != SHN_UNDEF) continue;
    const char* const name = elf_strptr(elf, header.sh_link, symbol.st_name);
    linked.of_windows = name != nullptr && is_of_windows(name);
  }
}

// None: it is not there, or a script.
std::optional<Linked> read_linked(const std::string& path) {
  const Fd file(open(path.c_str(), O_RDONLY | O_NONBLOCK | O_CLOEXEC));
  if (!file || elf_version(EV_CURRENT) == EV_NONE) return {};
  const std::unique_ptr<Elf, int (*)(Elf*)> elf(elf_begin(file.get(), ELF_C_READ, nullptr), elf_end);
  if (!elf || elf_kind(elf.get()) != ELF_K_ELF) return {};
  Linked linked;
  for (Elf_Scn* section = nullptr; (section = elf_nextscn(elf.get(), section)) != nullptr;) {
    GElf_Shdr header{};
    Elf_Data* const data = elf_getdata(section, nullptr);
    if (data == nullptr || gelf_getshdr(section, &header) == nullptr) continue;
    if (header.sh_type == SHT_DYNAMIC) add_needed(elf.get(), header, data, linked);
    if (header.sh_type == SHT_DYNSYM) add_calls(elf.get(), header, data, linked);
  }
  return linked;
}

bool is_of_mpi(std::string_view library) {
  return library.starts_with("libmpi");
}

// The files that the system's linker finds for a program, which it names in place of running it.
std::vector<std::string> libraries_of(const std::string& path) {
  std::vector<Child> linker(1);
  linker[0].command = {"env", "LD_TRACE_LOADED_OBJECTS=1", path};
  run_all(linker);
  std::vector<std::string> found;
  std::istringstream lines(linker[0].status == 0 ? linker[0].output : "");
  for (std::string line; std::getline(lines, line);) {
    const auto arrow = line.find(" => ");
    if (arrow == line.npos) continue;
    const auto begin = arrow + std::strlen(" => ");
    found.push_back(line.substr(begin, line.find(" (", begin) - begin));
  }
  return found;
}

} // namespace

std::string library_of_mpich(const std::string& name) {
  const auto linked = read_linked(path_of(name));
  if (!linked) return {};
  const auto found = std::ranges::find_if(linked->needed, is_of_mpich);
  return found != linked->needed.end() ? *found : std::string();
}

bool may_make_windows(const std::string& name) {
  const std::string path = path_of(name);
  const auto linked = read_linked(path);
  if (!linked || linked->of_windows || std::ranges::none_of(linked->needed, is_of_mpi)) return true;
  const std::vector<std::string> libraries = libraries_of(path);
  return libraries.empty() || std::ranges::any_of(libraries, [](const std::string& library) {
           if (is_of_mpi(std::filesystem::path(library).filename().string())) return false;
           const auto its = read_linked(library);
           return !its || its->of_windows;
         });
}

} // namespace parc::tools
