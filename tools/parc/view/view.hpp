// SPDX-License-Identifier: BSD-3-Clause
// What can be seen of this host's kernel and of its programs by somebody who only reads: the kernel's
// counters (system/observe/counters.hpp) and the control segments that they name. Nobody is asked, and the
// kernel may hang or be dead.
#pragma once

#include "system/observe/counters.hpp"
#include "system/observe/machine.hpp"
#include "system/observe/unfinished.hpp"

#include <string>
#include <vector>

namespace parc::tools {

struct ProgramView {
  CounterSnapshot::Session counted; // by the kernel
  RankState seen;                   // in the program's segment; not joined: that is not there
};

// Of the machine that all of it runs on.
struct MachineView {
  Machine machine;
  double load = -1; // as load_average()
};
[[nodiscard]] MachineView look_at_machine();

struct KernelView {
  CounterSnapshot kernel;
  std::vector<ProgramView> programs; // by job and rank
};

[[nodiscard]] Result<CounterReader> open_counters(const std::string& runtime_dir);
[[nodiscard]] KernelView look_at_kernel(const CounterReader& counters);

[[nodiscard]] std::string job_name(std::uint64_t id);
[[nodiscard]] std::string code_name(const CounterSnapshot::Error& error); // "PARC_EPEER", "ECONNRESET", "3"

} // namespace parc::tools
