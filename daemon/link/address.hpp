// SPDX-License-Identifier: BSD-3-Clause
// Where a kernel is dialed: an IPv4 or IPv6 address with its port, the path of a Unix socket, or the kernel
// itself, to which others relay.
#pragma once

#include "system/error.hpp"

#include <cstdint>
#include <cstring>
#include <string>
#include <string_view>
#include <sys/socket.h>

namespace parc::daemon {

struct Address {
  sockaddr_storage storage{};
  socklen_t length = 0;
  [[nodiscard]] std::string text() const; // "10.0.0.2 port 7272", "the Unix socket /run/parc/link"
  [[nodiscard]] std::string host() const; // "10.0.0.2", "/run/parc/link"; a Unix socket without a path has ""
  [[nodiscard]] bool is_ip() const { return family() == AF_INET || family() == AF_INET6; }
  [[nodiscard]] bool relayed() const { return family() == AF_UNSPEC && length != 0; }
  struct RelayTarget {
    std::uint64_t identity; // 0: whoever has that name
    std::string name;
    std::string via; // the host whose kernel is to relay; empty: whoever can
  };
  [[nodiscard]] RelayTarget relay_target() const; // of one that is relayed
  [[nodiscard]] int family() const { return storage.ss_family; }
  [[nodiscard]] std::uint16_t port() const; // 0 where there is none
  void set_port(std::uint16_t port);
  friend bool operator==(const Address& a, const Address& b) {
    return a.length == b.length && std::memcmp(&a.storage, &b.storage, a.length) == 0;
  }
};

// Of the two ends of a socket; of no family where there is none.
Address local_address(int socket);
Address peer_address(int socket);
// ENAMETOOLONG where the system has no room for so long a path.
Result<Address> unix_address(const std::string& path);
// Of a name too long for it, the beginning.
Address relayed_address(std::uint64_t identity, std::string_view name, std::string_view via = {});

} // namespace parc::daemon
