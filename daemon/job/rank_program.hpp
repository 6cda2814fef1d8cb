// SPDX-License-Identifier: BSD-3-Clause
// What the ranks of one host run: the program of their job, as it is there. Their home, PATH and what else
// differs from site to site are those of this host's kernel, and on the host that the job was started on
// those of who did so; where the homes are the same, the caller's paths go before this host's. What begins
// with ~/ lies in that home, whatever the ranks are told of it, and so does a directory of the caller's home
// that is not there.
#pragma once

#include "jobs/host_place.hpp"
#include "jobs/program.hpp"

#include <string>
#include <vector>

namespace parc::daemon {

// As it is for one host, by what is that host's own.
[[nodiscard]] Program with_place(Program program, const HostPlace& place);

// This kernel's.
[[nodiscard]] std::vector<std::string> own_environment();

// `started_here`: the job was started on this host. `own`: this kernel's environment; `libraries`: where
// libparc is installed, behind what LD_LIBRARY_PATH has; empty: where everybody looks.
[[nodiscard]] Program program_of_ranks(Program program, bool started_here,
                                       const std::vector<std::string>& own, const std::string& libraries);

} // namespace parc::daemon
