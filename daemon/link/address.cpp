// SPDX-License-Identifier: BSD-3-Clause
#include "daemon/link/address.hpp"

#include <array>
#include <cerrno>
#include <cstddef>
#include <fmt/format.h>
#include <netdb.h>
#include <netinet/in.h>
#include <sys/un.h>

namespace parc::daemon {

// The port stands in the same place in both families.
std::uint16_t Address::port() const {
  if (family() == AF_UNIX) return 0;
  return ntohs(reinterpret_cast<const sockaddr_in*>(&storage)->sin_port);
}

void Address::set_port(std::uint16_t port) {
  if (family() != AF_UNIX) reinterpret_cast<sockaddr_in*>(&storage)->sin_port = htons(port);
}

std::string Address::host() const {
  if (family() == AF_UNIX) {
    const auto* const at = reinterpret_cast<const sockaddr_un*>(&storage);
    return {at->sun_path, strnlen(at->sun_path, length - offsetof(sockaddr_un, sun_path))};
  }
  std::array<char, NI_MAXHOST> text{};
  const auto* const at = reinterpret_cast<const sockaddr*>(&storage);
  const bool known = getnameinfo(at, length, text.data(), text.size(), nullptr, 0, NI_NUMERICHOST) == 0;
  return known ? text.data() : "an unknown address";
}

std::string Address::text() const {
  if (family() != AF_UNIX) return fmt::format("{} port {}", host(), port());
  const std::string path = host();
  return path.empty() ? "a Unix socket" : fmt::format("the Unix socket {}", path);
}

Address local_address(int socket) {
  Address address;
  address.length = sizeof address.storage;
  getsockname(socket, reinterpret_cast<sockaddr*>(&address.storage), &address.length);
  return address;
}

Address peer_address(int socket) {
  Address address;
  address.length = sizeof address.storage;
  getpeername(socket, reinterpret_cast<sockaddr*>(&address.storage), &address.length);
  return address;
}

Result<Address> unix_address(const std::string& path) {
  Address address;
  auto& at = *reinterpret_cast<sockaddr_un*>(&address.storage);
  if (path.size() >= sizeof at.sun_path)
    return error(ENAMETOOLONG, "the path of a Unix socket has at most {} bytes: {}", sizeof at.sun_path - 1,
                 path);
  at.sun_family = AF_UNIX;
  path.copy(at.sun_path, path.size());
  address.length = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + path.size() + 1);
  return address;
}

} // namespace parc::daemon
