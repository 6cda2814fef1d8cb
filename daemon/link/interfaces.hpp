// SPDX-License-Identifier: BSD-3-Clause
// The network addresses of this host.
#pragma once

#include <span>
#include <string>
#include <vector>

namespace parc::daemon {

// By which others reach what listens on these numeric addresses ("0.0.0.0" and "::" are all of their kind):
// the best first, IPv4 before IPv6, those of loopback only where there is nothing else.
[[nodiscard]] std::vector<std::string> reachable_at(std::span<const std::string> listens);

} // namespace parc::daemon
