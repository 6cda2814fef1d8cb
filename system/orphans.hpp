// SPDX-License-Identifier: BSD-3-Clause
// Processes that outlived their kernel. A rank dies with its kernel by itself; what a rank started itself may
// not. Every process of a job carries in its environment which kernel it belongs to.
#pragma once

#include "system/runtime_dir.hpp"

#include <string>
#include <sys/types.h>

namespace parc {

// The variable that a kernel gives to its ranks: PARC_KERNEL (system/environment.hpp).
[[nodiscard]] std::string kernel_variable(pid_t kernel);

// Kills the processes of ours that belong to a kernel of this runtime directory that has ended, and waits a
// moment until they are dead. Returns how many.
unsigned end_orphans(const RuntimeDir& dir);

// Kills what a kernel's ranks, of that job or (empty) of all, have started that lives on: in process groups
// and sessions of its own, perhaps. Reads /proc, where it may have to wait: not for the kernel's loop.
void end_strays(const std::string& kernel_variable, const std::string& job_variable = {});

} // namespace parc
