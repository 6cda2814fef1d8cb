// SPDX-License-Identifier: BSD-3-Clause
// The TCP sockets on which a kernel waits for others, and what those are told of where it listens.
#pragma once

#include "daemon/settings/config.hpp"
#include "system/error.hpp"
#include "system/fd.hpp"

#include <cstdint>
#include <string>
#include <vector>

namespace parc::daemon {

struct ListensAt {
  std::vector<std::string> hosts;      // numeric addresses
  std::vector<std::string> advertised; // to be told to others in their place
  std::uint16_t port = 0;
};

struct Listeners {
  std::vector<Fd> sockets;
  ListensAt at;
  std::string words; // "127.0.0.1 and ::1, port 7272, on loopback only"
};

// Binds the first free port of the configured range on every configured address; any free one where nobody
// has chosen, the usual one is taken, and only this host is listened to.
[[nodiscard]] Result<Listeners> bind_listeners(const Config& config);

} // namespace parc::daemon
