// SPDX-License-Identifier: BSD-3-Clause
#include "control/tool_messages.hpp"

namespace parc::control::tool {
namespace {

// As Kind.
constexpr std::array<std::string_view, kinds> names{
    "ping",      "heard", "run",   "input",  "signal", "kill",    "timeout", "output", "input_taken",
    "unreached", "dump",  "ranks", "dumped", "search", "reached", "tried",   "key",    "done"};

} // namespace

std::string_view name(Kind kind) {
  return names[static_cast<std::size_t>(kind)];
}

std::optional<Kind> kind_named(std::string_view name) {
  return kind_among<Kind>(names, name);
}

} // namespace parc::control::tool
