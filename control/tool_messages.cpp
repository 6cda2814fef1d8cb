// SPDX-License-Identifier: BSD-3-Clause
#include "control/tool_messages.hpp"

#include <algorithm>

namespace parc::control::tool {
namespace {

// As Kind.
constexpr std::array<std::string_view, kinds> names{
    "ping",      "heard", "run",   "input",  "signal", "kill",    "timeout", "output", "input_taken",
    "unreached", "dump",  "ranks", "dumped", "search", "reached", "key",     "done"};

} // namespace

std::string_view name(Kind kind) {
  return names[static_cast<std::size_t>(kind)];
}

std::optional<Kind> kind_named(std::string_view name) {
  const auto found = std::ranges::find(names, name);
  if (found == names.end()) return {};
  return static_cast<Kind>(found - names.begin());
}

} // namespace parc::control::tool
