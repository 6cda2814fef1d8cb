// SPDX-License-Identifier: BSD-3-Clause
#include "daemon/base/acceptor.hpp"

#include "system/limits.hpp"

#include <cerrno>
#include <cstring>
#include <fmt/format.h>
#include <sys/socket.h>

namespace parc::daemon {
namespace {

constexpr double pause_s = 0.1;

} // namespace

Acceptor::Acceptor(Loop& loop, Events events)
    : loop_(loop), events_(std::move(events)), pause_(loop, [this] { resume(); }), exhausted_(loop, "times") {
}

void Acceptor::listen(Fd listener) {
  const int fd = listener.get();
  Listener& made = listeners_.emplace_back();
  made.socket = std::move(listener);
  made.readable = Event(loop_.events(), fd, EV_READ | EV_PERSIST, [this, fd](short) { accept(fd); });
  made.readable.add();
}

void Acceptor::listen_instead(Fd listener) {
  for (const Listener& each : listeners_)
    while (events_.room()) {
      Fd socket(accept4(each.socket.get(), nullptr, nullptr, SOCK_NONBLOCK | SOCK_CLOEXEC));
      if (!socket) break;
      events_.accepted(std::move(socket));
    }
  listeners_.clear();
  listen(std::move(listener));
  if (paused_) listeners_.back().readable.remove();
}

void Acceptor::accept(int listener) {
  if (!events_.room()) return pause();
  Fd socket(accept4(listener, nullptr, nullptr, SOCK_NONBLOCK | SOCK_CLOEXEC));
  if (socket) return events_.accepted(std::move(socket));
  const int code = errno;
  if (code != EMFILE && code != ENFILE && code != ENOBUFS && code != ENOMEM) return; // it has gone again
  const Error why =
      error(code, "somebody who connects has to wait: {}{}", std::strerror(code), descriptor_advice(code));
  exhausted_.say(why.text, ErrorKind::Refused, why);
  pause();
}

void Acceptor::pause() {
  if (paused_) return;
  paused_ = true;
  for (Listener& each : listeners_) each.readable.remove();
  pause_.set(pause_s);
}

void Acceptor::resume() {
  if (!paused_) return;
  paused_ = false;
  pause_.cancel();
  for (Listener& each : listeners_) each.readable.add();
}

} // namespace parc::daemon
