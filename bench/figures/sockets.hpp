// SPDX-License-Identifier: BSD-3-Clause
// Plain TCP connections between two hosts, for the peers that parc is compared with.
#pragma once

#include "system/error.hpp"
#include "system/fd.hpp"

#include <cstddef>
#include <cstdint>
#include <string>

namespace parc::bench {

struct Endpoint {
  std::string peer = {}; // the other host; empty: accepts
  std::uint16_t port = 5077;
  int buffer = 0; // bytes of the socket's buffers; 0: the system's
};

// One connection with TCP_NODELAY. The accepting side may come a moment later.
[[nodiscard]] Result<Fd> connect(const Endpoint& where);

} // namespace parc::bench
