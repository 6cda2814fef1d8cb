// SPDX-License-Identifier: BSD-3-Clause
// Commands for timelines.
#pragma once

#include "tools/parc/talk/command.hpp"

namespace parc::tools {

[[nodiscard]] Command trace_command();

} // namespace parc::tools
