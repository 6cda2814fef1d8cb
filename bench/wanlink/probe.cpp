// SPDX-License-Identifier: BSD-3-Clause
#include "bench/wanlink/probe.hpp"

#include "bench/figures/sockets.hpp"

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <cstdint>
#include <cstring>
#include <ctime>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>
#include <thread>

namespace parc::bench {
namespace {

using Clock = std::chrono::steady_clock;
using namespace std::chrono_literals;

std::int64_t nanoseconds(const timespec& time) {
  return time.tv_sec * 1'000'000'000 + time.tv_nsec;
}

} // namespace

// The time of arrival is the one that the receiving host's network gave the packet: when a process wakes for
// it is the scheduler's doing.
Result<std::vector<double>> receive_stamps() {
  PARC_TRY(connection, connect({}));
  const int on = 1;
  if (setsockopt(connection.get(), SOL_SOCKET, SO_TIMESTAMPNS, &on, sizeof on) != 0)
    return system_error("cannot ask for the time of arrival");
  std::vector<double> delays;
  for (;;) {
    std::int64_t sent = 0;
    iovec body{&sent, sizeof sent};
    alignas(cmsghdr) std::array<char, 256> control{};
    msghdr message{};
    message.msg_iov = &body;
    message.msg_iovlen = 1;
    message.msg_control = control.data();
    message.msg_controllen = control.size();
    if (recvmsg(connection.get(), &message, MSG_WAITALL) != sizeof sent) return delays;
    for (cmsghdr* header = CMSG_FIRSTHDR(&message); header; header = CMSG_NXTHDR(&message, header)) {
      if (header->cmsg_level != SOL_SOCKET || header->cmsg_type != SCM_TIMESTAMPNS) continue;
      timespec arrived{};
      std::memcpy(&arrived, CMSG_DATA(header), sizeof arrived);
      delays.push_back(static_cast<double>(nanoseconds(arrived) - sent) / 1e6);
    }
  }
}

Result<void> send_stamps(const std::string& host, int count) {
  PARC_TRY(connection, connect({.peer = host}));
  for (int i = 0; i < count; ++i) {
    // Between messages the link is idle, with gaps that are no multiple of anything.
    std::this_thread::sleep_for(2ms + i % 7 * 313us);
    timespec time{};
    clock_gettime(CLOCK_REALTIME, &time); // the clock of the times of arrival
    const std::int64_t now = nanoseconds(time);
    if (send(connection.get(), &now, sizeof now, MSG_NOSIGNAL) != sizeof now)
      return system_error("cannot send");
  }
  return success();
}

Result<double> flood(const Flood& what) {
  PARC_TRY(connection, connect({.peer = what.peer}));
  const int fd = connection.get();
  const int unsent = 256 * 1024;
  setsockopt(fd, IPPROTO_TCP, TCP_NOTSENT_LOWAT, &unsent, sizeof unsent);
  std::vector<char> data(256 * 1024);
  const auto begin = Clock::now();
  const auto elapsed = [&] { return std::chrono::duration<double>(Clock::now() - begin).count(); };
  std::int64_t received = 0;
  std::int64_t before = 0;
  double first = 0;
  double last = 0;
  bool sends = what.sends;
  if (!sends) shutdown(fd, SHUT_WR);
  // Ends when both directions have: this one by the clock, the other by end of file.
  for (bool receives = true; sends || receives;) {
    pollfd ready{.fd = fd,
                 .events = static_cast<short>((receives ? POLLIN : 0) | (sends ? POLLOUT : 0)),
                 .revents = 0};
    if (poll(&ready, 1, -1) < 0) return system_error("cannot poll");
    const double now = elapsed();
    if (receives && ready.revents & (POLLIN | POLLHUP | POLLERR)) {
      const ssize_t length = recv(fd, data.data(), data.size(), MSG_DONTWAIT);
      if (length < 0 && errno != EAGAIN) return system_error("cannot receive");
      receives = length != 0;
      received += std::max<ssize_t>(length, 0);
      if (now < what.warm_up) {
        before = received;
        first = now;
      } else if (now < what.warm_up + what.seconds) {
        last = now;
      } else if (last > 0) {
        received -= std::max<ssize_t>(length, 0); // past the end: not counted
      }
    }
    if (sends && ready.revents & POLLOUT &&
        send(fd, data.data(), data.size(), MSG_DONTWAIT | MSG_NOSIGNAL) < 0 && errno != EAGAIN)
      return system_error("cannot send");
    if (sends && now > what.warm_up + what.seconds) {
      shutdown(fd, SHUT_WR);
      sends = false;
    }
  }
  return last > first ? static_cast<double>(received - before) * 8 / 1e6 / (last - first) : 0;
}

} // namespace parc::bench
