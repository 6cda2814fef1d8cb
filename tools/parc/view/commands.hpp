// SPDX-License-Identifier: BSD-3-Clause
// Commands that show what kernels and jobs do.
#pragma once

#include "tools/parc/talk/command.hpp"

namespace parc::tools {

[[nodiscard]] Command status_command();
[[nodiscard]] Command top_command();
[[nodiscard]] Command errors_command();
[[nodiscard]] Command metrics_command();
[[nodiscard]] Command dump_command();
[[nodiscard]] Command ps_command();
[[nodiscard]] Command kill_command();

} // namespace parc::tools
