// SPDX-License-Identifier: BSD-3-Clause
// The network addresses of this host.
#pragma once

#include "system/error.hpp"

#include <span>
#include <string>
#include <vector>

namespace parc::daemon {

// By which others reach what listens on these numeric addresses ("0.0.0.0" and "::" are all of their kind),
// the best first: those that `in_use` names, in its order, as other hosts see them; then what this host shows
// to the world, by its routes; then the rest, of which bridges come last, as each host that has containers
// has the same. In each part IPv4 comes before IPv6. Those of loopback only where there is nothing else.
[[nodiscard]] std::vector<std::string> reachable_at(std::span<const std::string> listens,
                                                    std::span<const std::string> in_use);

// The numeric addresses that these stand for: such ones, networks ("10.9.0.0/24") and interfaces ("wg0"),
// which stand for those of this host that are in them, or theirs. ENODEV: there is none for any of them; one
// of which there is none beside others is only logged.
[[nodiscard]] Result<std::vector<std::string>> addresses_of(std::span<const std::string> places);

} // namespace parc::daemon
