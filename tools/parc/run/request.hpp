// SPDX-License-Identifier: BSD-3-Clause
// What parc run's command line asks the kernel for.
#pragma once

#include "tools/parc/advice/advice.hpp"
#include "tools/parc/hosts/hosts.hpp"
#include "tools/parc/talk/kernel_connection.hpp"

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace parc::tools {

// One of the programs that colons separate: what stands before the first is for all.
struct AppOptions {
  std::optional<std::uint32_t> ranks;
  NamedHosts named;
  std::string directory;
  std::vector<std::string> environment; // NAME or NAME=VALUE
  std::vector<std::string> command;
};

struct RunOptions : AppOptions {
  std::vector<AppOptions> further;
  std::optional<std::uint32_t> ranks_per_host;
  std::string input = "0"; // the rank that reads our stdin, all or none
  std::optional<double> timeout_s;
  bool tag_output = false;
  bool keep_going = false;
  bool mpi = false;          // its ranks are MPI's
  std::string bind = "none"; // or "core"
  std::string trace;         // file; empty: none
  bool trace_pages = false;  // it tells of first touches, too
  AdviceOptions advice;
  std::string early_release; // a level of parc_set_release; empty: as the environment says
  std::string runtime_dir;
};

// That each has a name and, where there are several, a number of ranks; of MPI, that it is Open MPI's.
[[nodiscard]] Result<void> check_programs(const RunOptions& options);

// `options` are checked. `hosts`: of the job; empty: the kernel's own.
[[nodiscard]] Result<tool::Run> describe(const RunOptions& options, std::vector<HostSlots> hosts);

} // namespace parc::tools
