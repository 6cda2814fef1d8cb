// SPDX-License-Identifier: BSD-3-Clause
#include "daemon/link/socket_stream.hpp"

#include "daemon/base/unix_listener.hpp"
#include "daemon/link/tcp_stream.hpp"
#include "system/limits.hpp"

#include <cerrno>
#include <cstring>
#include <sys/socket.h>

namespace parc::daemon {
namespace {

Transfer failed() {
  if (errno == EAGAIN) return {.status = Transfer::Status::would_block};
  return {.status = Transfer::Status::broken, .code = errno};
}

} // namespace

Error connect_failure(int code, const Address& to) {
  if (code == ECONNREFUSED && to.family() != AF_UNIX)
    return error(
        code,
        "{} refuses the connection: no parcd listens there; start one, name its port under [hosts], or, "
        "where one was started but listens on loopback only (parc status on that host), end it with "
        "parc stop and start it with --listen 0.0.0.0, as parcd(8) explains",
        to.text());
  return error(code, "{} cannot be reached: {}{}", to.text(), std::strerror(code), descriptor_advice(code));
}

SocketStream::SocketStream(event_base* loop, Fd socket, const Address& peer, bool open)
    : Stream(local_address(socket.get()), peer), socket_(std::move(socket)),
      event_(loop, socket_.get(), EV_READ | EV_WRITE | EV_CLOSED | EV_PERSIST | EV_ET,
             [this](short what) { ready(what); }),
      open_(open) {
  event_.add();
}

void SocketStream::ready(short what) {
  if ((what & (EV_READ | EV_CLOSED)) != 0) readable_ = true;
  if ((what & EV_WRITE) != 0) writable_ = true;
}

int SocketStream::opened() {
  if (open_) return 0;
  if (!readable_ && !writable_) return EINPROGRESS;
  int code = 0;
  socklen_t size = sizeof code;
  getsockopt(socket(), SOL_SOCKET, SO_ERROR, &code, &size);
  if (code != 0) return code;
  open_ = writable_;
  return open_ ? 0 : EINPROGRESS;
}

Transfer SocketStream::read(std::span<const iovec> to) {
  ssize_t got = 0;
  do got = readv(socket(), to.data(), static_cast<int>(to.size()));
  while (got < 0 && errno == EINTR);
  if (got > 0) return {.bytes = static_cast<std::size_t>(got)};
  if (got == 0) return {.status = Transfer::Status::ended};
  readable_ = false;
  return failed();
}

Transfer SocketStream::write(std::span<const iovec> from) {
  std::size_t offered = 0;
  for (const iovec& part : from) offered += part.iov_len;
  ssize_t sent = 0;
  do sent = writev(socket(), from.data(), static_cast<int>(from.size()));
  while (sent < 0 && errno == EINTR);
  writable_ = sent >= 0 && static_cast<std::size_t>(sent) == offered;
  if (sent < 0) return failed();
  return {.bytes = static_cast<std::size_t>(sent)};
}

void SocketStream::end_output() {
  shutdown(socket(), SHUT_WR);
}

Result<std::unique_ptr<Stream>> SocketStreams::dial(const Address& to, KeyUse) {
  const bool is_path = to.family() == AF_UNIX;
  Fd socket(::socket(to.family(), SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
  if (!socket || (!is_path && !prepare_socket(socket.get(), config_)) ||
      (::connect(socket.get(), reinterpret_cast<const sockaddr*>(&to.storage), to.length) != 0 &&
       errno != EINPROGRESS))
    return connect_failure(errno, to);
  if (is_path) return std::unique_ptr<Stream>(new SocketStream(loop_.events(), std::move(socket), to, true));
  return std::unique_ptr<Stream>(new TcpStream(loop_.events(), std::move(socket), to, config_, false));
}

void SocketStreams::accept_for(Acceptance owner) {
  owner_ = std::move(owner);
  acceptor_.emplace(loop_, Acceptor::Events{.room = owner_.room,
                                            .accepted = [this](Fd socket) { accepted(std::move(socket)); }});
}

// What has gone again meanwhile is nobody's.
void SocketStreams::accepted(Fd socket) {
  const Address peer = peer_address(socket.get());
  if (local_address(socket.get()).family() == AF_UNIX) {
    if (const auto ours = check_user(socket.get()); !ours) return owner_.turned_away(ours.error());
    return owner_.accepted(std::make_unique<SocketStream>(loop_.events(), std::move(socket), peer, true));
  }
  if (prepare_accepted(socket.get()))
    owner_.accepted(std::make_unique<TcpStream>(loop_.events(), std::move(socket), peer, config_, true));
}

} // namespace parc::daemon
