// SPDX-License-Identifier: BSD-3-Clause
// Ports of 127.0.0.1 for what is to listen there a moment later. They are below those that the system gives
// to outgoing connections: else the first connections may have what the last one is to listen on.
#pragma once

#include "system/fd.hpp"

#include <algorithm>
#include <arpa/inet.h>
#include <cstdint>
#include <random>
#include <stdexcept>
#include <sys/socket.h>
#include <vector>

namespace parc::test {

[[nodiscard]] inline sockaddr_in at_loopback(std::uint16_t port) {
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  address.sin_port = htons(port);
  return address;
}

[[nodiscard]] inline bool is_free(std::uint16_t port) {
  const sockaddr_in address = at_loopback(port);
  const Fd socket(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  return bind(socket.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address) == 0;
}

// Whoever waits for a server asks this: to bind its port now and then would keep it from there.
[[nodiscard]] inline bool is_listened_on(std::uint16_t port) {
  const sockaddr_in address = at_loopback(port);
  const Fd socket(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  return connect(socket.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address) == 0;
}

[[nodiscard]] inline std::vector<std::uint16_t> free_ports(std::size_t count) {
  constexpr std::uint16_t first = 12'000, end = 32'000;
  static std::minstd_rand random(std::random_device{}());
  std::vector<std::uint16_t> ports;
  for (auto tries = 0; ports.size() < count; ++tries) {
    if (tries == end - first) throw std::runtime_error("no free port");
    const auto port = static_cast<std::uint16_t>(first + random() % (end - first));
    if (std::ranges::find(ports, port) == ports.end() && is_free(port)) ports.push_back(port);
  }
  return ports;
}

} // namespace parc::test
