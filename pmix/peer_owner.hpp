// SPDX-License-Identifier: BSD-3-Clause
// Who has connected. libpmix listens on TCP of the loopback interface, where every user of the host gets,
// and believes what uid a client says it has. The system knows better.
#pragma once

#include <optional>
#include <sys/types.h>

namespace parc::pmix {

// The user who has made the other end of a connection of IPv4 within this host; none: nobody has it open any
// more, or it comes from elsewhere.
[[nodiscard]] std::optional<uid_t> owner_of_peer(int connection);

// Whether libpmix has let in a client by the accept() that asks for that: another libpmix may have another
// way.
[[nodiscard]] bool peers_are_checked();

} // namespace parc::pmix
