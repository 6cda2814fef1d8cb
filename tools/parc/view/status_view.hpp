// SPDX-License-Identifier: BSD-3-Clause
// What parc status shows of a kernel, its jobs, links and programs.
#pragma once

#include "tools/parc/screen/table.hpp"
#include "tools/parc/view/view.hpp"

#include <cstdint>

namespace parc::tools {

// `now_s`: Unix time. `verbose`: also what the kernel counts.
[[nodiscard]] Page status_page(const KernelView& view, const MachineView& machine, bool verbose,
                               std::uint64_t now_s, const Display& display);

} // namespace parc::tools
