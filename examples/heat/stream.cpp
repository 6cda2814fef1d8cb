// SPDX-License-Identifier: BSD-3-Clause
#include "examples/heat/stream.hpp"

#include <cerrno>
#include <sys/socket.h>

namespace parc::heat {

Result<void> send_all(int socket, const void* data, std::size_t bytes) {
  for (const char* at = static_cast<const char*>(data); bytes > 0;) {
    const ssize_t sent = send(socket, at, bytes, MSG_NOSIGNAL);
    if (sent < 0 && errno == EINTR) continue;
    if (sent < 0) return system_error("cannot send to the other side");
    at += sent;
    bytes -= static_cast<std::size_t>(sent);
  }
  return success();
}

Result<void> receive_all(int socket, void* data, std::size_t bytes) {
  for (char* at = static_cast<char*>(data); bytes > 0;) {
    const ssize_t received = recv(socket, at, bytes, MSG_WAITALL);
    if (received < 0 && errno == EINTR) continue;
    if (received < 0) return system_error("cannot receive from the other side");
    if (received == 0) return error(EPIPE, "the other side has ended before all had come");
    at += received;
    bytes -= static_cast<std::size_t>(received);
  }
  return success();
}

} // namespace parc::heat
