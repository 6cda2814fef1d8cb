// SPDX-License-Identifier: BSD-3-Clause
// The command that this room has.
#pragma once

#include "tools/parc/talk/command.hpp"

namespace parc::tools {

[[nodiscard]] Command model_command();

} // namespace parc::tools
