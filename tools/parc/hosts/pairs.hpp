// SPDX-License-Identifier: BSD-3-Clause
// Which hosts of `parc up` reach each other, besides this one, as their kernels have found out.
#pragma once

#include "tools/parc/hosts/start_hosts.hpp"

#include <string>
#include <vector>

namespace parc::tools {

struct Pairs {
  std::string summary = {};               // a line; empty: there is no pair
  std::vector<std::string> problems = {}; // a sentence for each pair without a way
};
[[nodiscard]] Pairs pairs_of(const std::vector<StartedHost>& hosts);

} // namespace parc::tools
