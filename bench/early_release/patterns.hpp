// SPDX-License-Identifier: BSD-3-Clause
// The programs of figure 2 of erMPI as the model sees them: what each rank calculates, sends and waits for.
#pragma once

#include "bench/early_release/model.hpp"

namespace parc::bench {

// Of `calculation` seconds of a core for every rank, in a step.
[[nodiscard]] Pattern poisson_pattern(int ranks, double calculation, double row_bytes);
[[nodiscard]] Pattern nbody_pattern(int ranks, double calculation, double block_bytes);
// The master makes matrices in `making` seconds; the slaves multiply.
[[nodiscard]] Pattern m3_pattern(int ranks, double making, double multiplying, double slice_bytes);

// The same where every second rank calculates `part` more in one step and less in the next, and the others
// the other way round; not the ranks before `first`.
[[nodiscard]] Pattern uneven(Pattern pattern, double part, std::size_t first);

} // namespace parc::bench
