// SPDX-License-Identifier: BSD-3-Clause
// Commands that measure.
#pragma once

#include "tools/parc/talk/command.hpp"

namespace parc::tools {

[[nodiscard]] Command probe_command();

} // namespace parc::tools
