// SPDX-License-Identifier: BSD-3-Clause
// Starting the kernel of this host where none runs, for programs and tools that need one.
#pragma once

#include "system/error.hpp"
#include "system/fd.hpp"

#include <string>
#include <vector>

namespace parc {

// Before what parcd says at its start and starts all the same.
inline constexpr const char* start_warning = "parcd: warning: ";

// The parcd beside `near`, the path of a file of ours, or in the bin beside its directory; else "parcd", to
// be looked for in PATH.
[[nodiscard]] std::string parcd_near(const std::string& near);

// As PARC_AUTOSTART says: on, which is the default, or off.
[[nodiscard]] Result<bool> may_start_kernels();

// A connection to the socket of the kernel that runs in `runtime_dir` (empty: by the rules of
// runtime_dir.hpp); no descriptor: none runs there. One that is about to be ready, or to end, is awaited.
[[nodiscard]] Result<Fd> connect_to_kernel(const std::string& runtime_dir);

// The same, after starting `parcd --detach` with `options` where none runs: one at a time, however many
// processes ask at once. parcd is the parcd_near(near). What it says on stderr is in the error.
[[nodiscard]] Result<Fd> connect_or_start_kernel(const std::string& runtime_dir, const std::string& near,
                                                 const std::vector<std::string>& options = {});

} // namespace parc
