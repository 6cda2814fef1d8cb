// SPDX-License-Identifier: BSD-3-Clause
// What was built or installed beside this program.
#pragma once

#include "system/error.hpp"

#include <string>
#include <string_view>
#include <vector>

namespace parc {

// A file in the directory of the libraries; empty: it is not there.
[[nodiscard]] std::string installed_library(std::string_view name);

// One of the programs that are no commands; empty: it is not there.
[[nodiscard]] std::string installed_program(std::string_view name);

// The value of FI_PROVIDER_PATH with which libfabric finds parc's provider; empty: it looks there by itself.
// An error: the provider is not there.
[[nodiscard]] Result<std::string> provider_path();

// A program whose waits are released early without its having asked for that gets libparc-early.so in front
// of its other libraries. Of the variables of its environment, which say NAME=VALUE, LD_PRELOAD is made so.
// An error: the library is not there. (A sanitizer stands between a program and the C library itself: such
// builds have none, and need none.)
[[nodiscard]] Result<void> preload_early_library(std::vector<std::string>& environment);

} // namespace parc
