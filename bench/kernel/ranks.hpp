// SPDX-License-Identifier: BSD-3-Clause
// What the ranks do while bench-kernel looks at the kernels.
#pragma once

#include "system/error.hpp"

#include <string_view>

namespace parc::bench {

inline constexpr std::string_view ready = "ready\n"; // what every idle rank prints

// "long": rank 0 sends 1 GiB to rank 1, which waits for it.
// "unexpected": rank 0 sends 1,024 messages of 1 MiB, and rank 1 reads none before all are announced.
// "all-pairs": every rank sends 32 MiB to every other, and then reads.
// "idle": every rank has talked to every other, says so, and calls parc no more.
[[nodiscard]] Result<void> be_rank(std::string_view part);

} // namespace parc::bench
