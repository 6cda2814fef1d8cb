// SPDX-License-Identifier: BSD-3-Clause
// What parc doctor finds. Each check is a pure function from facts (doctor_facts.hpp, doctor_hosts.hpp,
// doctor_far.hpp) to findings; who reads facts decides nothing.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace parc::tools::diagnosis {

enum class Level : std::uint8_t {
  ok,
  information, // worth knowing; nothing has to be done
  warning,     // parc works, but worse than it could, or not after a logout
  problem,     // something will fail
};
[[nodiscard]] constexpr std::string_view name(Level level) {
  constexpr std::string_view names[]{"ok", "note", "warning", "problem"};
  return names[static_cast<std::size_t>(level)];
}

struct Finding {
  std::string check; // what was looked at, in a word or two
  Level level = Level::ok;
  std::string found;
  std::string mend = {}; // what to do; never empty for a warning or a problem
};
using Findings = std::vector<Finding>;

struct Group {
  std::string name;
  Findings findings;
};

} // namespace parc::tools::diagnosis
