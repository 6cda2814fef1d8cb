// SPDX-License-Identifier: BSD-3-Clause
// Which hosts reach each other, besides this one, as their kernels have found out.
#pragma once

#include "control/host_answer.hpp"

#include <string>
#include <vector>

namespace parc::tools {

struct OneOfPairs { // whose kernel is up
  const std::string& host;
  const std::vector<control::HostTried>& tried;
  const std::string& not_tried; // why it has not said
};
struct Pairs {
  std::string summary = {};               // a sentence without its end; empty: there is no pair
  std::vector<std::string> problems = {}; // a sentence for each pair without a way
};
[[nodiscard]] Pairs pairs_of(const std::vector<OneOfPairs>& up);

template <class Host> [[nodiscard]] Pairs pairs_of(const std::vector<Host>& hosts) {
  std::vector<OneOfPairs> up;
  for (const Host& each : hosts)
    if (each.up()) up.push_back({each.host, each.tried, each.not_tried});
  return pairs_of(up);
}

} // namespace parc::tools
