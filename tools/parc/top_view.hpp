// SPDX-License-Identifier: BSD-3-Clause
// What parc top shows, as texts: the same on a terminal and in a file.
#pragma once

#include "tools/parc/rates.hpp"
#include "tools/parc/table.hpp"

#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace parc::tools {

struct SortKey {
  char key; // on a terminal
  std::string_view name;
  double (*value)(const ProgramRates&); // most first; none: by job and rank
};
[[nodiscard]] std::span<const SortKey> sort_keys();
[[nodiscard]] const SortKey* find_sort_key(std::string_view name); // none: there is none of that name

struct TopView {
  struct Table {
    std::vector<Column> columns;
    std::vector<std::vector<std::string>> rows;
  };
  std::vector<std::string> heading; // of the kernel
  Table links, ranks;
};
// `cores`: that the kernel may run on, in words.
[[nodiscard]] TopView top_view(const Rates& rates, const SortKey& sorted_by, const std::string& cores);

} // namespace parc::tools
