// SPDX-License-Identifier: BSD-3-Clause
// A write to a pipe that nobody reads raises SIGPIPE in this thread. A library has no business with the
// program's handler for it, and a pipe has no MSG_NOSIGNAL: the signal is held back, and taken out again.
#pragma once

#include <cerrno>
#include <csignal>

namespace parc::client {

class WithoutSigpipe {
public:
  WithoutSigpipe() {
    sigemptyset(&pipe_);
    sigaddset(&pipe_, SIGPIPE);
    pthread_sigmask(SIG_BLOCK, &pipe_, &before_);
  }
  WithoutSigpipe(const WithoutSigpipe&) = delete;
  WithoutSigpipe& operator=(const WithoutSigpipe&) = delete;
  ~WithoutSigpipe() { pthread_sigmask(SIG_SETMASK, &before_, nullptr); }

  // After EPIPE.
  void take_signal() {
    const timespec at_once{};
    while (sigtimedwait(&pipe_, nullptr, &at_once) < 0 && errno == EINTR) continue;
  }

private:
  sigset_t pipe_, before_;
};

} // namespace parc::client
