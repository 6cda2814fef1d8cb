// SPDX-License-Identifier: BSD-3-Clause
// The worked examples and figures of the report of 1994, from the model (parc model --reproduce).
#pragma once

#include "system/error.hpp"

#include <string>

namespace parc::tools {

// Section 2.3.1's two examples and section 4.3's numbers, as sentences and tables, each beside what the
// report says; 0, or 1 where one is not what the report has.
[[nodiscard]] int print_examples();

// Figures 3 to 9 and 24 into this directory, as figure-3.svg and so on, each beside the script that draws it.
[[nodiscard]] Result<void> draw_figures(const std::string& directory);

} // namespace parc::tools
