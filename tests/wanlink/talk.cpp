// SPDX-License-Identifier: BSD-3-Clause
// Plain TCP sockets for wanlink's system test.
//   wanlink_talk serve         says "ready", then echoes on every connection to port 5078
//   wanlink_talk beat HOST     sends a byte, waits for it to come back, prints a line; without end
//   wanlink_talk bulk HOST N   sends N bytes, compares what comes back; prints the congestion control
#include "system/fd.hpp"

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <string>
#include <string_view>
#include <sys/socket.h>
#include <thread>
#include <vector>

namespace {

[[noreturn]] void fail(const char* what) {
  std::perror(what);
  std::exit(1);
}

void serve() {
  const parc::Fd listener(socket(AF_INET6, SOCK_STREAM, 0));
  sockaddr_in6 any{};
  any.sin6_family = AF_INET6; // takes IPv4 too
  any.sin6_port = htons(5078);
  if (bind(listener.get(), reinterpret_cast<const sockaddr*>(&any), sizeof any) != 0 ||
      listen(listener.get(), 8) != 0)
    fail("listen");
  std::puts("ready");
  std::fflush(stdout);
  for (;;) {
    parc::Fd connection(accept(listener.get(), nullptr, nullptr));
    if (!connection) fail("accept");
    std::thread([fd = std::move(connection)] {
      std::vector<char> data(65'536);
      for (ssize_t length; (length = recv(fd.get(), data.data(), data.size(), 0)) > 0;)
        if (send(fd.get(), data.data(), static_cast<std::size_t>(length), MSG_NOSIGNAL) != length) return;
    }).detach();
  }
}

parc::Fd connect_to(const char* host) {
  addrinfo hints{};
  hints.ai_socktype = SOCK_STREAM;
  addrinfo* found = nullptr;
  if (getaddrinfo(host, "5078", &hints, &found) != 0) fail("getaddrinfo");
  parc::Fd connection(socket(found->ai_family, SOCK_STREAM, 0));
  if (connect(connection.get(), found->ai_addr, found->ai_addrlen) != 0) fail("connect");
  freeaddrinfo(found);
  return connection;
}

void beat(const char* host) {
  const parc::Fd connection = connect_to(host);
  for (char byte = 'x';
       send(connection.get(), &byte, 1, 0) == 1 && recv(connection.get(), &byte, 1, 0) == 1;) {
    std::puts("beat");
    std::fflush(stdout);
  }
  fail("beat");
}

void bulk(const char* host, std::size_t size) {
  const parc::Fd connection = connect_to(host);
  char congestion_control[16] = {};
  socklen_t length = sizeof congestion_control;
  getsockopt(connection.get(), IPPROTO_TCP, TCP_CONGESTION, congestion_control, &length);
  std::puts(congestion_control);
  std::vector<char> out(size);
  for (std::size_t i = 0; i < size; ++i) out[i] = static_cast<char>(i * 2654435761U >> 13);
  std::vector<char> in(size);
  std::thread sender([&] {
    for (std::size_t sent = 0; sent < size;) {
      const ssize_t now = send(connection.get(), out.data() + sent, size - sent, 0);
      if (now <= 0) fail("send");
      sent += static_cast<std::size_t>(now);
    }
  });
  if (recv(connection.get(), in.data(), size, MSG_WAITALL) != static_cast<ssize_t>(size)) fail("recv");
  sender.join();
  if (in != out) {
    std::fputs("the echo differs\n", stderr);
    std::exit(1);
  }
}

} // namespace

int main(int argc, char** argv) {
  const std::string_view role = argc > 1 ? argv[1] : "";
  if (role == "serve") serve();
  if (role == "beat" && argc == 3) beat(argv[2]);
  if (role == "bulk" && argc == 4) bulk(argv[2], std::stoul(argv[3]));
  return 0;
}
