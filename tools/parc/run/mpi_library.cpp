// SPDX-License-Identifier: BSD-3-Clause
#include "tools/parc/run/mpi_library.hpp"

#include "system/fd.hpp"

#include <algorithm>
#include <array>
#include <cstdlib>
#include <fcntl.h>
#include <filesystem>
#include <gelf.h>
#include <memory>
#include <string_view>
#include <unistd.h>

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

// What the table of dynamic linking in this section says, if it is one.
std::string needed_in(Elf* elf, Elf_Scn* section) {
  GElf_Shdr header{};
  if (gelf_getshdr(section, &header) == nullptr || header.sh_type != SHT_DYNAMIC) return {};
  Elf_Data* const data = elf_getdata(section, nullptr);
  GElf_Dyn entry{};
  for (int i = 0; data != nullptr && gelf_getdyn(data, i, &entry) != nullptr; ++i) {
    if (entry.d_tag != DT_NEEDED) continue;
    const char* const library = elf_strptr(elf, header.sh_link, entry.d_un.d_val);
    if (library != nullptr && is_of_mpich(library)) return library;
  }
  return {};
}

} // namespace

std::string library_of_mpich(const std::string& name) {
  const Fd file(open(path_of(name).c_str(), O_RDONLY | O_NONBLOCK | O_CLOEXEC));
  if (!file || elf_version(EV_CURRENT) == EV_NONE) return {};
  const std::unique_ptr<Elf, int (*)(Elf*)> elf(elf_begin(file.get(), ELF_C_READ, nullptr), elf_end);
  if (!elf || elf_kind(elf.get()) != ELF_K_ELF) return {};
  std::string found;
  for (Elf_Scn* section = nullptr; found.empty();) {
    section = elf_nextscn(elf.get(), section);
    if (section == nullptr) break;
    found = needed_in(elf.get(), section);
  }
  return found;
}

} // namespace parc::tools
