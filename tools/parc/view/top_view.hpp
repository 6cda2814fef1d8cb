// SPDX-License-Identifier: BSD-3-Clause
// What parc top shows: the same on a terminal and in a file.
#pragma once

#include "tools/parc/screen/table.hpp"
#include "tools/parc/view/rates.hpp"

#include <span>
#include <string>
#include <string_view>

namespace parc::tools {

struct SortKey {
  char key; // on a terminal
  std::string_view name;
  double (*value)(const ProgramRates&); // most first; none: by job and rank
};
[[nodiscard]] std::span<const SortKey> sort_keys();
[[nodiscard]] const SortKey* find_sort_key(std::string_view name); // none: there is none of that name

struct Cores {
  std::string kernels; // that it may run on, in words
  unsigned all = 0;    // of the machine
};
[[nodiscard]] Page top_page(const Rates& rates, const SortKey& sorted_by, const Cores& cores,
                            const Display& display);

} // namespace parc::tools
