// SPDX-License-Identifier: BSD-3-Clause
// The two pipes of a program that was started by hand, which it is passed over its connection to the door.
#pragma once

#include "system/error.hpp"
#include "system/fd.hpp"

namespace parc::daemon {

struct ProgramPipes { // the kernel's ends: non-blocking, close-on-exec
  Fd from_program, to_program;
};

// With the byte of a program beside them.
[[nodiscard]] Result<ProgramPipes> give_program_pipes(const Fd& socket);

} // namespace parc::daemon
