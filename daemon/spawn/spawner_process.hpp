// SPDX-License-Identifier: BSD-3-Clause
// The program that a process wants to spawn which is no rank: with its own directory, umask, limits, and as
// much of its environment as `parc run` gives ranks of its caller's.
#pragma once

#include "jobs/program.hpp"
#include "system/error.hpp"

#include <string>
#include <sys/types.h>
#include <vector>

namespace parc::daemon {

[[nodiscard]] Result<Program> program_like(pid_t process, const std::vector<std::string>& arguments);

} // namespace parc::daemon
