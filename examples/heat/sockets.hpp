// SPDX-License-Identifier: BSD-3-Clause
// The exchange of borders over plain sockets: the paper's reference, and t_com.
#pragma once

#include "examples/heat/line.hpp"
#include "examples/heat/strip.hpp"
#include "system/error.hpp"

namespace parc::heat {

// One time step: calculates all, then exchanges borders one direction at a time.
[[nodiscard]] Result<void> ping_pong(const Line& line, Strip& strip);
// The exchange alone, both directions at once: no calculation.
[[nodiscard]] Result<void> exchange(const Line& line, Strip& strip);

} // namespace parc::heat
