// SPDX-License-Identifier: BSD-3-Clause
// The two ranks of a measurement: rank 0 gets from the window of rank 1 in several ways, one after the other,
// again and again, so that what changes on the machine changes for all of them.
#pragma once

#include "bench/figures/figures.hpp"

#include <map>

namespace parc::bench {

using Samples = std::map<std::string, std::vector<double>>; // of each way: seconds

struct Measured {
  std::string name;         // the case
  double get = 0, work = 0; // seconds, each alone
  Samples samples;
};
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(Measured, name, get, work, samples)

// Rank 0 prints a line of JSON for each Measured of this part. `order`: in which it says that it touches what
// it gets, an enum parc_order.
[[nodiscard]] Result<void> be_rank(const std::string& part, int order, int repeats);

} // namespace parc::bench
