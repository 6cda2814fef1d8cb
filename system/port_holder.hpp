// SPDX-License-Identifier: BSD-3-Clause
// Who listens on a TCP port of this host, for the sentence that says why this process may not.
#pragma once

#include <cstdint>
#include <string>

namespace parc {

// "process 17 (parcd)" of this user, "a process of user alice", or "somebody" where the system does not show
// it.
[[nodiscard]] std::string holder_of_port(std::uint16_t port);

} // namespace parc
