// SPDX-License-Identifier: BSD-3-Clause
// Starting the kernel of this host where none runs, for programs and tools that need one.
#pragma once

#include "system/error.hpp"
#include "system/fd.hpp"

#include <string>
#include <vector>

namespace parc {

// The prefix of parcd's warnings at its start, which do not keep it from starting.
inline constexpr const char* start_warning = "parcd: warning: ";

// The path of the parcd installed with `near`, the path of a file of ours: in its directory, or in ../bin or
// ../../bin from there; else "parcd", to be looked for in PATH.
[[nodiscard]] std::string parcd_near(const std::string& near);

// Whether PARC_AUTOSTART lets programs and tools start kernels: on, which is the default, or off.
[[nodiscard]] Result<bool> may_start_kernels();

// A connection to the socket of the kernel that runs in `runtime_dir` (empty: by the rules of
// runtime_dir.hpp); no descriptor: none runs there. Waits up to 10 s for one that is about to be ready, or to
// end.
[[nodiscard]] Result<Fd> connect_to_kernel(const std::string& runtime_dir);

// Such a connection, after starting `parcd --detach` with `options` where no kernel runs: one at a time,
// however many processes ask at once. The parcd is parcd_near(near); what it says on stderr is in the error.
[[nodiscard]] Result<Fd> connect_or_start_kernel(const std::string& runtime_dir, const std::string& near,
                                                 const std::vector<std::string>& options = {});

} // namespace parc
