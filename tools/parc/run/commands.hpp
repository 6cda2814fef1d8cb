// SPDX-License-Identifier: BSD-3-Clause
// Commands that run programs.
#pragma once

#include "tools/parc/talk/command.hpp"

namespace parc::tools {

[[nodiscard]] Command run_command();
[[nodiscard]] Command mpi_command();

} // namespace parc::tools
