// SPDX-License-Identifier: BSD-3-Clause
#include "bench/figures/sockets.hpp"

#include <cerrno>
#include <chrono>
#include <memory>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>
#include <thread>

namespace parc::bench {

namespace {

using Clock = std::chrono::steady_clock;
using namespace std::chrono_literals;

constexpr auto patience = 10s;

void set(const Fd& socket, int level, int option, int value) {
  setsockopt(socket.get(), level, option, &value, sizeof value);
}

// Buffers have to be set before there is a connection: its window scale follows from them.
Fd make_socket(int buffer) {
  Fd made(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  if (buffer > 0) {
    set(made, SOL_SOCKET, SO_SNDBUF, buffer);
    set(made, SOL_SOCKET, SO_RCVBUF, buffer);
  }
  return made;
}

Result<Fd> accept_one(const Endpoint& where) {
  const Fd listener = make_socket(where.buffer);
  set(listener, SOL_SOCKET, SO_REUSEADDR, 1);
  sockaddr_in any{};
  any.sin_family = AF_INET;
  any.sin_port = htons(where.port);
  if (!listener || bind(listener.get(), reinterpret_cast<const sockaddr*>(&any), sizeof any) != 0 ||
      listen(listener.get(), 1) != 0)
    return system_error("cannot listen on port {}", where.port);
  Fd connection(accept4(listener.get(), nullptr, nullptr, SOCK_CLOEXEC));
  if (!connection) return system_error("cannot accept a connection");
  return connection;
}

Result<Fd> connect_to(const Endpoint& where) {
  addrinfo hints{};
  hints.ai_family = AF_INET;
  hints.ai_socktype = SOCK_STREAM;
  addrinfo* list = nullptr;
  const std::string port = std::to_string(where.port);
  if (const int code = getaddrinfo(where.peer.c_str(), port.c_str(), &hints, &list); code != 0)
    return error(EINVAL, "cannot resolve {}: {}", where.peer, gai_strerror(code));
  const std::unique_ptr<addrinfo, decltype(&freeaddrinfo)> found(list, freeaddrinfo);
  for (const auto give_up = Clock::now() + patience;;) {
    Fd connection = make_socket(where.buffer);
    if (::connect(connection.get(), found->ai_addr, found->ai_addrlen) == 0) return connection;
    if (errno != ECONNREFUSED || Clock::now() >= give_up)
      return system_error("cannot connect to {}", where.peer);
    std::this_thread::sleep_for(10ms);
  }
}

} // namespace

Result<Fd> connect(const Endpoint& where) {
  PARC_TRY(connection, where.peer.empty() ? accept_one(where) : connect_to(where));
  set(connection, IPPROTO_TCP, TCP_NODELAY, 1);
  return std::move(connection);
}

} // namespace parc::bench
