// SPDX-License-Identifier: BSD-3-Clause
// Commands for the kernel of this host.
#pragma once

#include "tools/parc/talk/command.hpp"

namespace parc::tools {

[[nodiscard]] Command stop_command();
[[nodiscard]] Command clean_command();
[[nodiscard]] Command keygen_command();

} // namespace parc::tools
