// SPDX-License-Identifier: BSD-3-Clause
// HUNT's figures 6 to 11 of what was measured, as one gnuplot script with its data in it.
#pragma once

#include "bench/one_sided/asker.hpp"

#include <string>
#include <vector>

namespace parc::bench {

struct Found {
  std::string part;
  int order = PARC_ORDER_ANY;
  Measured measured;
};

// `gnuplot FILE` makes FILE.svg of it.
[[nodiscard]] Result<void> write_pictures(const std::string& file, const std::string& link,
                                          const std::vector<Found>& found);

} // namespace parc::bench
