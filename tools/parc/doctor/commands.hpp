// SPDX-License-Identifier: BSD-3-Clause
// Commands that look for what is wrong.
#pragma once

#include "tools/parc/talk/command.hpp"

namespace parc::tools {

[[nodiscard]] Command doctor_command();

} // namespace parc::tools
