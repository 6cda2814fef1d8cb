// SPDX-License-Identifier: BSD-3-Clause
// What was built or installed beside this program.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace parc {

// A file in the directory of the libraries; empty: it is not there.
[[nodiscard]] std::string installed_library(std::string_view name);

// A program whose waits are released early without its having asked for that gets libparc-early.so in front
// of its other libraries. Of the variables of its environment, which say NAME=VALUE, LD_PRELOAD is made so.
// False: the library is not there.
[[nodiscard]] bool preload_early_library(std::vector<std::string>& environment);

} // namespace parc
