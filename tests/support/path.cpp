// SPDX-License-Identifier: BSD-3-Clause
#include "tests/support/path.hpp"

#include <array>
#include <cerrno>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <stdexcept>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

namespace parc::test {
namespace {

constexpr std::size_t most_held = 65536;

sockaddr_in loopback(std::uint16_t port) {
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  address.sin_port = htons(port);
  return address;
}

} // namespace

Path::Path(std::uint16_t to)
    : to_(to), listener_(socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0)),
      bell_(eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC)) {
  sockaddr_in address = loopback(0);
  socklen_t length = sizeof address;
  auto* const at = reinterpret_cast<sockaddr*>(&address);
  if (bind(listener_.get(), at, length) != 0 || listen(listener_.get(), 64) != 0 ||
      getsockname(listener_.get(), at, &length) != 0)
    throw std::runtime_error("no port for a path");
  port_ = ntohs(address.sin_port);
  thread_ = std::thread([this] { run(); });
}

Path::~Path() {
  {
    const std::lock_guard lock(mutex_);
    over_ = true;
  }
  wake();
  thread_.join();
}

void Path::wake() const {
  const std::uint64_t one = 1;
  if (write(bell_.get(), &one, sizeof one) < 0) return; // it rings already
}

void Path::cut() {
  const std::lock_guard lock(mutex_);
  for (Connection& connection : connections_) reset(connection);
  cuts_ += connections_.size();
  connections_.clear();
  wake();
}

void Path::cut_often(std::uint64_t bytes) {
  {
    const std::lock_guard lock(mutex_);
    most_ = bytes;
    for (Connection& connection : connections_) connection.left = bytes == 0 ? 0 : 1 + random_() % bytes;
  }
  wake();
}

void Path::hold_after(std::uint64_t bytes) {
  const std::lock_guard lock(mutex_);
  held_at_ = passed_ + bytes;
}

void Path::hold_newest() {
  const std::lock_guard lock(mutex_);
  if (!connections_.empty()) connections_.back().held = true;
}

void Path::go_on() {
  {
    const std::lock_guard lock(mutex_);
    held_at_ = UINT64_MAX;
    for (Connection& connection : connections_) connection.held = false;
  }
  wake();
}

void Path::down() {
  cut();
  const std::lock_guard lock(mutex_);
  down_ = true;
}

void Path::up() {
  cut(); // who waits for an answer asks again
  const std::lock_guard lock(mutex_);
  down_ = false;
}

// A reset, not an orderly end: what is under way is lost.
void Path::reset(Connection& connection) {
  const linger none{1, 0};
  for (Fd* socket : {&connection.near, &connection.far})
    if (*socket) setsockopt(socket->get(), SOL_SOCKET, SO_LINGER, &none, sizeof none), socket->reset();
}

void Path::accept() {
  while (true) {
    Connection made;
    made.near.reset(accept4(listener_.get(), nullptr, nullptr, SOCK_NONBLOCK | SOCK_CLOEXEC));
    if (!made.near) return;
    const sockaddr_in address = loopback(to_);
    if (!down_) {
      made.far.reset(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
      if (connect(made.far.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0) {
        reset(made);
        continue;
      }
      const int yes = 1;
      for (const Fd* each : {&made.near, &made.far})
        setsockopt(each->get(), IPPROTO_TCP, TCP_NODELAY, &yes, sizeof yes);
    }
    made.left = most_ == 0 ? 0 : 1 + random_() % most_;
    connections_.push_back(std::move(made));
  }
}

// What was read and could not be written yet is held. False: the connection is over.
bool Path::move(Connection& connection, int from, int to, std::vector<std::byte>& held, bool readable) {
  if (readable && held.size() < most_held) {
    std::array<std::byte, most_held> bytes;
    const ssize_t got = recv(from, bytes.data(), bytes.size(), MSG_DONTWAIT);
    if (got == 0 || (got < 0 && errno != EAGAIN)) return false;
    if (got > 0) held.insert(held.end(), bytes.begin(), bytes.begin() + got);
  }
  if (held.empty() || passed_ >= held_at_) return true;
  std::size_t most = std::min<std::size_t>(held.size(), held_at_ - passed_);
  if (connection.left != 0) most = std::min<std::size_t>(most, connection.left);
  const ssize_t sent = send(to, held.data(), most, MSG_DONTWAIT | MSG_NOSIGNAL);
  if (sent < 0) return errno == EAGAIN;
  held.erase(held.begin(), held.begin() + sent);
  passed_ += static_cast<std::uint64_t>(sent);
  if (connection.left == 0) return true;
  connection.left -= static_cast<std::uint64_t>(sent);
  return connection.left != 0;
}

bool Path::pass(Connection& connection, short near, short far) {
  if (!connection.far) return (near & (POLLERR | POLLHUP)) == 0;
  if (connection.held) return ((near | far) & (POLLERR | POLLHUP)) == 0;
  const short readable = POLLIN | POLLERR | POLLHUP;
  const int one = connection.near.get(), other = connection.far.get();
  return move(connection, one, other, connection.to_far, (near & readable) != 0) &&
         move(connection, other, one, connection.to_near, (far & readable) != 0);
}

void Path::run() {
  while (true) {
    std::vector<pollfd> polled{{bell_.get(), POLLIN, 0}, {listener_.get(), POLLIN, 0}};
    {
      const std::lock_guard lock(mutex_);
      if (over_) return;
      for (Connection& each : connections_) {
        const auto wanted = [&](const auto& in, const auto& out) {
          if (each.held) return short{0};
          const bool moves = !out.empty() && passed_ < held_at_;
          return static_cast<short>((in.size() < most_held ? POLLIN : 0) | (moves ? POLLOUT : 0));
        };
        polled.push_back({each.near.get(), wanted(each.to_far, each.to_near), 0});
        polled.push_back({each.far ? each.far.get() : -1, wanted(each.to_near, each.to_far), 0});
      }
    }
    poll(polled.data(), polled.size(), -1);
    std::uint64_t rung = 0;
    const bool changed = read(bell_.get(), &rung, sizeof rung) > 0; // what was polled may be closed
    const std::lock_guard lock(mutex_);
    std::size_t i = 2;
    for (auto each = connections_.begin(); !changed && each != connections_.end(); i += 2) {
      if (pass(*each, polled[i].revents, polled[i + 1].revents)) {
        ++each;
        continue;
      }
      reset(*each);
      each = connections_.erase(each);
      ++cuts_;
    }
    accept();
  }
}

} // namespace parc::test
