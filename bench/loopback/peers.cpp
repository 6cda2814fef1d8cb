// SPDX-License-Identifier: BSD-3-Clause
#include "bench/loopback/peers.hpp"

#include "bench/figures/places.hpp"
#include "system/fd.hpp"

#include <algorithm>
#include <arpa/inet.h>
#include <cerrno>
#include <cstring>
#include <netinet/tcp.h>
#include <sched.h>
#include <stdexcept>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>
#include <vector>

namespace parc::bench {
namespace {

void pin(std::size_t core) {
  cpu_set_t cores;
  CPU_ZERO(&cores);
  CPU_SET(core, &cores);
  sched_setaffinity(0, sizeof cores, &cores);
}

void must(bool done, const char* what) {
  if (!done) throw std::runtime_error(std::string("cannot ") + what + ": " + std::strerror(errno));
}

// Runs `child` in a process on core 1 and `parent` here on core 0.
template <class Parent, class Child> double beside(Parent parent, Child child) {
  cpu_set_t before;
  sched_getaffinity(0, sizeof before, &before);
  const pid_t id = fork();
  must(id >= 0, "fork");
  if (id == 0) {
    pin(1);
    child();
    _exit(0);
  }
  pin(0);
  const double seconds = parent();
  waitpid(id, nullptr, 0);
  sched_setaffinity(0, sizeof before, &before);
  return seconds;
}

void move(int fd, std::byte* data, std::size_t bytes, bool out, bool poll) {
  const int flags = MSG_NOSIGNAL | (poll ? MSG_DONTWAIT : 0);
  while (bytes != 0) {
    const ssize_t n = out ? send(fd, data, bytes, flags) : recv(fd, data, bytes, flags);
    if (n > 0) {
      data += n;
      bytes -= static_cast<std::size_t>(n);
    } else if (n == 0 || (errno != EAGAIN && errno != EINTR)) {
      must(false, "move bytes over a socket");
    }
  }
}

} // namespace

double socket_one_way(std::size_t bytes, int times, bool poll) {
  const Fd listener(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t size = sizeof address;
  auto* where = reinterpret_cast<sockaddr*>(&address);
  must(bind(listener.get(), where, size) == 0 && listen(listener.get(), 1) == 0 &&
           getsockname(listener.get(), where, &size) == 0,
       "listen");
  const int yes = 1;
  std::vector<std::byte> data(bytes, std::byte{1});
  const auto parent = [&] {
    const Fd connection(accept(listener.get(), nullptr, nullptr));
    setsockopt(connection.get(), IPPROTO_TCP, TCP_NODELAY, &yes, sizeof yes);
    double begin = 0;
    for (int i = -times / 10; i < times; ++i) { // the first tenth warms up
      if (i == 0) begin = seconds_now();
      move(connection.get(), data.data(), bytes, true, poll);
      move(connection.get(), data.data(), bytes, false, poll);
    }
    return (seconds_now() - begin) / times / 2;
  };
  const auto child = [&] {
    const Fd connection(socket(AF_INET, SOCK_STREAM, 0));
    must(connect(connection.get(), where, size) == 0, "connect");
    setsockopt(connection.get(), IPPROTO_TCP, TCP_NODELAY, &yes, sizeof yes);
    for (int i = -times / 10; i < times; ++i) {
      move(connection.get(), data.data(), bytes, false, poll);
      move(connection.get(), data.data(), bytes, true, poll);
    }
  };
  return beside(parent, child);
}

double pipe_one_way(int times) {
  int there[2];
  int back[2];
  must(pipe(there) == 0 && pipe(back) == 0, "make a pipe");
  const auto bounce = [times](int in, int out, bool first) {
    char data[8] = {};
    for (int i = 0; i < times; ++i) {
      if (first) must(write(out, data, sizeof data) == sizeof data, "write to a pipe");
      must(read(in, data, sizeof data) == sizeof data, "read from a pipe");
      if (!first) must(write(out, data, sizeof data) == sizeof data, "write to a pipe");
    }
  };
  const auto parent = [&] {
    const double begin = seconds_now();
    bounce(back[0], there[1], true);
    return (seconds_now() - begin) / times / 2;
  };
  const double seconds = beside(parent, [&] { bounce(there[0], back[1], false); });
  for (const int fd : {there[0], there[1], back[0], back[1]}) close(fd);
  return seconds;
}

double memcpy_time(std::size_t bytes, int times) {
  std::vector<std::byte> from(bytes, std::byte{1});
  std::vector<std::byte> to(bytes, std::byte{2});
  const double begin = seconds_now();
  for (int i = 0; i < times; ++i) {
    std::memcpy(to.data(), from.data(), bytes);
    asm volatile("" : : "r"(to.data()) : "memory");
  }
  return (seconds_now() - begin) / times;
}

} // namespace parc::bench
