// SPDX-License-Identifier: BSD-3-Clause
#include "tools/parc/run/mpi_settings.hpp"

#include "jobs/program.hpp"

#include <algorithm>
#include <cstdlib>
#include <fmt/format.h>
#include <string_view>
#include <unistd.h>

namespace parc::tools {

void ask_for_mpi(std::vector<std::string>& asked, bool with_windows) {
  const auto add = [&asked](const std::string& name, const char* value) {
    if (std::getenv(name.c_str()) == nullptr &&
        std::ranges::find(asked, name, name_of_variable) == asked.end())
      asked.push_back(fmt::format("{}={}", name, value));
  };
  if (!with_windows) add("OMPI_MCA_btl", "self");
  for (const auto& [name, value] : mpi_settings) add(fmt::format("OMPI_MCA_{}", name), value);
  add(for_mpi4py, "False");
  for (char** entry = environ; *entry != nullptr; ++entry) { // what the caller has set
    const std::string variable = *entry;
    const std::string_view name = name_of_variable(variable);
    if (is_variable(variable) && (name.starts_with("OMPI_MCA_") || name == for_mpi4py) &&
        std::ranges::find(asked, name, name_of_variable) == asked.end())
      asked.push_back(variable);
  }
}

} // namespace parc::tools
