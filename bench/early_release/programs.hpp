// SPDX-License-Identifier: BSD-3-Clause
// The programs of erMPI on the hosts of an emulation, one rank a host: blocking and released early, beside
// the best that the model allows.
#pragma once

#include "bench/early_release/model.hpp"
#include "bench/figures/places.hpp"

namespace parc::bench {

// Each program at several ratios of calculation to communication.
[[nodiscard]] Result<std::vector<Row>> measure_programs(const Hosts& hosts, std::string_view preset,
                                                        int repeats);

// Table 2: giving pages no access and giving it back, beside their transfer at 1 Gbit/s; and all that a long
// message costs that is touched once.
[[nodiscard]] Result<std::vector<Row>> measure_guards(int repeats);

// Figure 4: each case's step beside the best possible one, in per cent of the blocking one: an SVG file.
[[nodiscard]] Result<void> draw_programs(const std::vector<Row>& rows, const std::string& file);

} // namespace parc::bench
