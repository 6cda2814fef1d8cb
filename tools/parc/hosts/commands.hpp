// SPDX-License-Identifier: BSD-3-Clause
// Commands for the kernels of hosts.
#pragma once

#include "tools/parc/talk/command.hpp"

namespace parc::tools {

[[nodiscard]] Command up_command();
[[nodiscard]] Command down_command();
[[nodiscard]] Command hosts_command();

} // namespace parc::tools
