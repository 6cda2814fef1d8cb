// SPDX-License-Identifier: BSD-3-Clause
// The three measurements of bench-exchange, each a table of its own.
#pragma once

#include "bench/figures/figures.hpp"
#include "bench/figures/places.hpp"

namespace parc::bench {

// Messages both ways at once, parc beside plain sockets that take turns and that do not (figure 20).
[[nodiscard]] Result<std::vector<Row>> measure_exchange(const Hosts& hosts, int repeats);
// The same, and one way, over lengths of fragments and sizes of socket buffers (figures 11 and 20).
[[nodiscard]] Result<std::vector<Row>> measure_sweep(const Hosts& hosts, int repeats);
// A small message while a large one passes on the same link.
[[nodiscard]] Result<std::vector<Row>> measure_interference(const Hosts& hosts, int repeats);

} // namespace parc::bench
