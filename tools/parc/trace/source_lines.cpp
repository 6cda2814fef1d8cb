// SPDX-License-Identifier: BSD-3-Clause
#include "tools/parc/trace/source_lines.hpp"

#include <algorithm>
#include <array>
#include <cstdlib>
#include <cxxabi.h>
#include <dwarf.h>
#include <elfutils/libdw.h>
#include <elfutils/libdwfl.h>
#include <filesystem>
#include <optional>
#include <span>

namespace parc::tools {
namespace {

struct Free {
  void operator()(void* memory) const { std::free(memory); }
};

// What is called there was not written by who reads this: the C++ interface of parc, and what comes with the
// compiler.
bool is_of_a_library(std::string_view file) {
  return file.ends_with("/parc/parc.hpp") || file.find("/include/c++/") != file.npos ||
         file.find("/lib/gcc/") != file.npos;
}

// As it stands in the source.
std::string in_source(const std::string& name) {
  constexpr std::size_t longest = 80;
  const bool is_mangled = name.starts_with("_Z"); // else it would be taken for that of a type
  const std::unique_ptr<char, Free> whole(
      is_mangled ? abi::__cxa_demangle(name.c_str(), nullptr, nullptr, nullptr) : nullptr);
  const std::string text = whole ? whole.get() : name;
  return text.size() <= longest ? text : text.substr(0, longest) + "...";
}

std::string from_here(const std::string& file) {
  std::error_code failure;
  const std::string here = std::filesystem::current_path(failure).string() + "/";
  return !failure && here.size() > 1 && file.starts_with(here) ? file.substr(here.size()) : file;
}

} // namespace

// One program or library, whatever it was loaded at.
class SourceLines::Object {
public:
  explicit Object(const std::string& path) {
    std::error_code failure; // a rank has named it
    if (!std::filesystem::is_regular_file(path, failure)) {
      why_not_ = "there is no such file here";
      return;
    }
    dwfl_.reset(dwfl_begin(&callbacks));
    if (!dwfl_) return;
    dwfl_report_begin(dwfl_.get());
    module_ = dwfl_report_offline(dwfl_.get(), path.c_str(), path.c_str(), -1);
    dwfl_report_end(dwfl_.get(), nullptr, nullptr);
    if (module_ == nullptr) {
      why_not_ = dwfl_errmsg(-1);
      return;
    }
    GElf_Addr bias = 0;
    GElf_Ehdr header{};
    Elf* const elf = dwfl_module_getelf(module_, &bias);
    if (elf == nullptr || gelf_getehdr(elf, &header) == nullptr) {
      why_not_ = "it is no program or library";
      return;
    }
    at_its_addresses_ = header.e_type == ET_EXEC;
    bias_ = bias;
    Dwarf_Addr dwarf_bias = 0;
    if (dwfl_module_getdwarf(module_, &dwarf_bias) == nullptr)
      why_not_ = "it has no debug information (compile it with -g)";
  }

  [[nodiscard]] const std::string& why_not() const { return why_not_; }

  // Of the instruction at this offset from where it was loaded, `base`.
  [[nodiscard]] std::string line_at(std::uint64_t base, std::uint64_t offset) const {
    if (module_ == nullptr || !why_not_.empty()) return {};
    const Dwarf_Addr address = (at_its_addresses_ ? base : 0) + offset + bias_;
    Dwarf_Addr bias = 0;
    Dwarf_Die* const unit = unit_of(address, bias);
    Dwarf_Line* const line = unit == nullptr ? nullptr : dwarf_getsrc_die(unit, address - bias);
    const char* const file = line == nullptr ? nullptr : dwarf_linesrc(line, nullptr, nullptr);
    int number = 0;
    if (file == nullptr || dwarf_lineno(line, &number) != 0) return {};
    if (is_of_a_library(file))
      if (const auto caller = caller_of_inlined(*unit, address - bias)) return *caller;
    return fmt::format("{}:{}", from_here(file), number);
  }

  // The function that it is in; empty: not known.
  [[nodiscard]] std::string function_at(std::uint64_t base, std::uint64_t offset) const {
    const GElf_Addr address = (at_its_addresses_ ? base : 0) + offset + bias_;
    const char* const name = module_ == nullptr ? nullptr : dwfl_module_addrname(module_, address);
    return name == nullptr ? std::string() : name;
  }

private:
  // Where no table says which unit an address is in, as Clang makes none, all are asked.
  [[nodiscard]] Dwarf_Die* unit_of(Dwarf_Addr address, Dwarf_Addr& bias) const {
    if (Dwarf_Die* const unit = dwfl_module_addrdie(module_, address, &bias)) return unit;
    Dwarf_Die* unit = nullptr;
    while ((unit = dwfl_module_nextcu(module_, unit, &bias)) != nullptr)
      if (dwarf_haspc(unit, address - bias) > 0) return unit;
    return nullptr;
  }

  // The innermost call to what was inlined there that does not stand in a library itself.
  [[nodiscard]] static std::optional<std::string> caller_of_inlined(Dwarf_Die& unit, Dwarf_Addr address) {
    Dwarf_Die* found = nullptr;
    if (dwarf_getscopes(&unit, address, &found) <= 0) return std::nullopt;
    Dwarf_Die innermost = found[0];
    std::free(found);
    found = nullptr;
    const int count = dwarf_getscopes_die(&innermost, &found);
    const std::unique_ptr<Dwarf_Die, Free> owner(found);
    Dwarf_Files* files = nullptr;
    if (count <= 0 || dwarf_getsrcfiles(&unit, &files, nullptr) != 0) return std::nullopt;
    for (Dwarf_Die& scope : std::span(found, static_cast<std::size_t>(count))) {
      if (dwarf_tag(&scope) != DW_TAG_inlined_subroutine) continue;
      const auto file = number_in(scope, DW_AT_call_file), line = number_in(scope, DW_AT_call_line);
      const char* const name = file ? dwarf_filesrc(files, *file, nullptr, nullptr) : nullptr;
      if (name != nullptr && line && !is_of_a_library(name))
        return fmt::format("{}:{}", from_here(name), *line);
    }
    return std::nullopt;
  }

  static std::optional<Dwarf_Word> number_in(Dwarf_Die& die, unsigned name) {
    Dwarf_Attribute attribute{};
    Dwarf_Word number = 0;
    if (dwarf_attr(&die, name, &attribute) == nullptr || dwarf_formudata(&attribute, &number) != 0)
      return std::nullopt;
    return number;
  }

  static char* debug_path;
  static constexpr Dwfl_Callbacks callbacks{.find_elf = dwfl_build_id_find_elf,
                                            .find_debuginfo = dwfl_standard_find_debuginfo,
                                            .section_address = dwfl_offline_section_address,
                                            .debuginfo_path = &debug_path};
  struct End {
    void operator()(Dwfl* dwfl) const { dwfl_end(dwfl); }
  };

  std::unique_ptr<Dwfl, End> dwfl_;
  Dwfl_Module* module_ = nullptr; // of dwfl_
  bool at_its_addresses_ = false; // it cannot be loaded anywhere else
  Dwarf_Addr bias_ = 0;
  std::string why_not_;
};

char* SourceLines::Object::debug_path = nullptr; // the usual ones

SourceLines::SourceLines() = default;
SourceLines::~SourceLines() = default;

SourceLines::Object& SourceLines::object(const std::string& path) {
  auto& known = objects_[path];
  if (known) return *known;
  unsetenv("DEBUGINFOD_URLS"); // nobody is asked over the network
  known = std::make_unique<Object>(path);
  if (!known->why_not().empty()) missing_[path] = fmt::format("no lines of {}: {}", path, known->why_not());
  return *known;
}

std::optional<SourceLines::Offset> SourceLines::offset_of(const RankTrace& rank, std::uint64_t site) {
  auto loaded = rank.objects.upper_bound(site - 1);
  if (site == 0 || loaded == rank.objects.begin()) return std::nullopt;
  const auto& [base, path] = *--loaded;
  return Offset{base, site - 1 - base, &path}; // of the call, not of what is behind it
}

std::string SourceLines::line_of(const RankTrace& rank, std::uint64_t site) {
  const auto at = offset_of(rank, site);
  if (!at) return {};
  const auto [known, added] = known_.try_emplace({*at->path, at->offset});
  if (added) known->second = object(*at->path).line_at(at->base, at->offset);
  return known->second;
}

// Where there are no lines: as the rank has it, an object, an offset, and the name of a function, which may
// be longer than there was room for.
std::string SourceLines::place(const RankTrace& rank, std::uint64_t site) {
  if (std::string line = line_of(rank, site); !line.empty()) return line;
  const auto text = rank.sites.find(site);
  if (text == rank.sites.end()) return fmt::format("{:#x}", site);
  const auto [named, added] = named_.try_emplace(text->second);
  if (added) named->second = name_of(rank, site, text->second);
  return named->second;
}

std::string SourceLines::name_of(const RankTrace& rank, std::uint64_t site, const std::string& text) {
  const std::size_t end = std::min(text.find(' ', text.rfind("+0x")), text.size());
  std::string name = end < text.size() ? text.substr(end + 1) : std::string();
  if (const auto at = offset_of(rank, site)) {
    const std::string whole = object(*at->path).function_at(at->base, at->offset);
    if (!whole.empty()) name = whole;
  }
  const std::string place = text.substr(0, end);
  return name.empty() ? place : fmt::format("{} {}", place, in_source(name));
}

} // namespace parc::tools
