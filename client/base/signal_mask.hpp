// SPDX-License-Identifier: BSD-3-Clause
// This thread's signal mask, changed while one of these lives; `how` as in pthread_sigmask.
#pragma once

#include <csignal>

namespace parc::client {

class SignalMask {
public:
  SignalMask(int how, const sigset_t& signals) { pthread_sigmask(how, &signals, &before_); }
  SignalMask(const SignalMask&) = delete;
  SignalMask& operator=(const SignalMask&) = delete;
  ~SignalMask() { pthread_sigmask(SIG_SETMASK, &before_, nullptr); }

private:
  sigset_t before_;
};

} // namespace parc::client
