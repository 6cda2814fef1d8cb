// SPDX-License-Identifier: BSD-3-Clause
// All of a piece of memory through a blocking stream socket.
#pragma once

#include "system/error.hpp"

#include <cstddef>

namespace parc::heat {

// Blocks until all is sent, or until the peer is gone (EPIPE or ECONNRESET; no SIGPIPE).
[[nodiscard]] Result<void> send_all(int socket, const void* data, std::size_t bytes);
// Blocks until all has come; EPIPE when the stream ends before.
[[nodiscard]] Result<void> receive_all(int socket, void* data, std::size_t bytes);

} // namespace parc::heat
