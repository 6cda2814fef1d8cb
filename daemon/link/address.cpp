// SPDX-License-Identifier: BSD-3-Clause
#include "daemon/link/address.hpp"

#include "daemon/settings/config.hpp"

#include <array>
#include <cerrno>
#include <cstddef>
#include <fmt/format.h>
#include <netdb.h>
#include <netinet/in.h>
#include <sys/un.h>

namespace parc::daemon {

namespace {

struct Relayed { // as it lies in an Address
  sa_family_t family = AF_UNSPEC;
  std::array<char, 6> unused{}; // so that two of one kernel are the same bytes
  std::uint64_t identity = 0;
  std::array<char, ViaAddress::longest_host> name{};
  std::array<char, ViaAddress::longest_relay> via{};
};

template <std::size_t Size> std::string text_in(const std::array<char, Size>& bytes) {
  return {bytes.data(), strnlen(bytes.data(), bytes.size())};
}

static_assert(sizeof(Relayed) <= sizeof(sockaddr_storage));

Relayed relayed_in(const Address& address) {
  Relayed relayed;
  std::memcpy(static_cast<void*>(&relayed), &address.storage, sizeof relayed);
  return relayed;
}

} // namespace

// The port stands in the same place in both families.
std::uint16_t Address::port() const {
  if (!is_ip()) return 0;
  return ntohs(reinterpret_cast<const sockaddr_in*>(&storage)->sin_port);
}

void Address::set_port(std::uint16_t port) {
  if (is_ip()) reinterpret_cast<sockaddr_in*>(&storage)->sin_port = htons(port);
}

std::string Address::host() const {
  if (relayed()) return {};
  if (family() == AF_UNIX) {
    const auto* const at = reinterpret_cast<const sockaddr_un*>(&storage);
    return {at->sun_path, strnlen(at->sun_path, length - offsetof(sockaddr_un, sun_path))};
  }
  std::array<char, NI_MAXHOST> text{};
  const auto* const at = reinterpret_cast<const sockaddr*>(&storage);
  const bool known = getnameinfo(at, length, text.data(), text.size(), nullptr, 0, NI_NUMERICHOST) == 0;
  return known ? text.data() : "an unknown address";
}

Address::RelayTarget Address::relay_target() const {
  const Relayed relayed = relayed_in(*this);
  return {relayed.identity, text_in(relayed.name), text_in(relayed.via)};
}

Address relayed_address(std::uint64_t identity, std::string_view name, std::string_view via) {
  Relayed relayed;
  relayed.identity = identity;
  name.substr(0, relayed.name.size()).copy(relayed.name.data(), relayed.name.size());
  via.substr(0, relayed.via.size()).copy(relayed.via.data(), relayed.via.size());
  Address address;
  std::memcpy(&address.storage, &relayed, sizeof relayed);
  address.length = sizeof relayed;
  return address;
}

std::string Address::text() const {
  if (relayed()) {
    const RelayTarget target = relay_target();
    return target.via.empty() ? "a relay" : fmt::format("the kernel of host {}", target.via);
  }
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
