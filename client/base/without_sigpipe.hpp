// SPDX-License-Identifier: BSD-3-Clause
// A write to a pipe that nobody reads raises SIGPIPE in this thread. A library has no business with the
// program's handler for it, and a pipe has no MSG_NOSIGNAL: the signal is held back, and taken out again.
#pragma once

#include "client/base/signal_mask.hpp"

#include <cerrno>

namespace parc::client {

class WithoutSigpipe {
public:
  // After EPIPE.
  void take_signal() {
    const timespec at_once{};
    while (sigtimedwait(&pipe_, nullptr, &at_once) < 0 && errno == EINTR) continue;
  }

private:
  static sigset_t only_pipe() {
    sigset_t signals;
    sigemptyset(&signals);
    sigaddset(&signals, SIGPIPE);
    return signals;
  }

  const sigset_t pipe_ = only_pipe();
  const SignalMask blocked_{SIG_BLOCK, pipe_};
};

} // namespace parc::client
