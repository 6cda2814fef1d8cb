// SPDX-License-Identifier: BSD-3-Clause
// Two programs that both send 8 MiB before they read: over plain blocking sockets they are stuck for good,
// over two engines on the same sockets they are done. Nothing here is judged by time: the sockets of the
// first pair are full, and nobody is left to read from them.
#define BOOST_TEST_MODULE sockets
#include "protocol/engine.hpp"
#include "system/fd.hpp"

#include <array>
#include <atomic>
#include <boost/test/unit_test.hpp>
#include <cerrno>
#include <poll.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <thread>
#include <vector>

using namespace parc::protocol;

namespace {

constexpr std::size_t message_size = std::size_t{8} << 20;

std::array<parc::Fd, 2> small_sockets(int flags) {
  std::array<int, 2> fds{};
  BOOST_REQUIRE(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | flags, 0, fds.data()) == 0);
  std::array<parc::Fd, 2> sockets{parc::Fd(fds[0]), parc::Fd(fds[1])};
  const int room = 8192;
  for (const parc::Fd& socket : sockets)
    BOOST_REQUIRE(setsockopt(socket.get(), SOL_SOCKET, SO_SNDBUF, &room, sizeof room) == 0);
  return sockets;
}

std::vector<std::byte> message_of(int side) {
  std::vector<std::byte> bytes(message_size);
  for (std::size_t i = 0; i < bytes.size(); ++i)
    bytes[i] = static_cast<std::byte>((i * 2654435761u >> 13) + static_cast<std::size_t>(side));
  return bytes;
}

// The program of the textbook: send, then receive. Returns how much it got out.
std::size_t send_then_receive(int socket, std::vector<std::byte> message) {
  std::size_t sent = 0;
  while (sent < message.size()) {
    const ssize_t n = send(socket, message.data() + sent, message.size() - sent, MSG_NOSIGNAL);
    if (n <= 0) return sent;
    sent += static_cast<std::size_t>(n);
  }
  for (std::size_t got = 0; got < message.size();) {
    const ssize_t n = recv(socket, message.data() + got, message.size() - got, 0);
    if (n <= 0) break;
    got += static_cast<std::size_t>(n);
  }
  return sent;
}

// Whether not a byte more would go.
bool full(int socket) {
  const std::byte byte{};
  return send(socket, &byte, 1, MSG_DONTWAIT | MSG_NOSIGNAL) < 0 && errno == EAGAIN;
}

// The same program beside an engine: the write first, the read after it has been accepted.
class Side : Listener {
public:
  Side(int side, int socket)
      : socket_(socket), out_(message_of(side)), in_(message_size), engine_({}, *this) {
    const auto self = static_cast<std::uint32_t>(side), peer = 1 - self;
    link_ = engine_.add_link({.self = self, .peer = peer});
    const std::uint64_t endpoint = engine_.add_endpoint(); // both have the same number
    std::array<Address, 2> members;
    members[self] = {here, endpoint};
    members[peer] = {static_cast<std::int32_t>(link_), endpoint};
    engine_.add_group(members);
    engine_.write(endpoint, {.cookie = 1, .destination = peer, .memory = {out_.data(), out_.size()}});
    engine_.read(endpoint, {.cookie = 2, .source = peer, .tag = 0, .memory = {in_.data(), in_.size()}});
  }

  // Until both operations are done here and nothing is owed to the other side.
  void run() {
    while (unfinished_ != 0 || owes_ || engine_.link(link_).received != engine_.link(link_).received_told) {
      const bool moved = static_cast<int>(read()) + static_cast<int>(write()) != 0;
      if (moved) continue;
      owes_ = engine_.owes_acknowledgement();
      engine_.flush_acknowledgements();
      if (owes_) continue;
      if (unfinished_ == 0) return;
      const bool more = !engine_.plan_write(link_).empty();
      pollfd wait{socket_, static_cast<short>(POLLIN | (more ? POLLOUT : 0)), 0};
      poll(&wait, 1, -1);
      if (ended_) return;
    }
  }
  [[nodiscard]] bool done() const { return unfinished_ == 0 && !failed_; }
  [[nodiscard]] const std::vector<std::byte>& in() const { return in_; }

private:
  bool read() {
    std::array<iovec, 64> places;
    const std::size_t count = engine_.plan_read(link_, places);
    const ssize_t n = readv(socket_, places.data(), static_cast<int>(count));
    if (n == 0) ended_ = true;
    if (n <= 0) return false;
    if (engine_.took(link_, static_cast<std::size_t>(n)) != Refusal::none) failed_ = true;
    return true;
  }
  bool write() {
    const auto plan = engine_.plan_write(link_);
    if (plan.empty()) return false;
    const ssize_t n = writev(socket_, plan.data(), static_cast<int>(plan.size()));
    if (n <= 0) return false;
    engine_.wrote(link_, static_cast<std::size_t>(n));
    return true;
  }

  void begun(std::uint64_t, const Outcome&) override {}
  void progressed(std::uint64_t, const Progress&) override {}
  void finished(std::uint64_t, const Outcome& outcome) override {
    --unfinished_;
    failed_ = failed_ || outcome.fault != Fault::none;
  }
  void drained(std::uint64_t) override {}

  int socket_;
  int unfinished_ = 2;
  bool owes_ = false;
  bool failed_ = false;
  bool ended_ = false;
  std::vector<std::byte> out_, in_;
  Engine engine_;
  std::uint32_t link_ = 0;
};

} // namespace

BOOST_AUTO_TEST_CASE(plain_sockets_get_stuck) {
  const auto sockets = small_sockets(0);
  std::array<std::size_t, 2> sent{};
  std::thread first([&] { sent[0] = send_then_receive(sockets[0].get(), message_of(0)); });
  std::thread second([&] { sent[1] = send_then_receive(sockets[1].get(), message_of(1)); });
  // Each thread only reads when all of its message is out; with both sockets full that never happens.
  while (!full(sockets[0].get()) || !full(sockets[1].get())) std::this_thread::yield();
  for (const parc::Fd& socket : sockets) shutdown(socket.get(), SHUT_RDWR);
  first.join();
  second.join();
  BOOST_TEST(sent[0] < message_size);
  BOOST_TEST(sent[1] < message_size);
}

BOOST_AUTO_TEST_CASE(engines_on_the_same_sockets_do_not) {
  const auto sockets = small_sockets(SOCK_NONBLOCK);
  Side first(0, sockets[0].get()), second(1, sockets[1].get());
  std::thread other([&] { second.run(); });
  first.run();
  other.join();
  BOOST_TEST((first.done() && second.done()));
  BOOST_TEST((first.in() == message_of(1)));
  BOOST_TEST((second.in() == message_of(0)));
}
