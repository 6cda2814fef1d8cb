// SPDX-License-Identifier: BSD-3-Clause
// SIGSEGV is libparc's and is never blocked; what the program sets for it is kept for faults of its own.
#include "client/preload/hooks.hpp"

#include <csignal>
#include <pthread.h>

namespace {

// The set without SIGSEGV, where it is one that blocks.
class Unblocked {
public:
  explicit Unblocked(const sigset_t* set) {
    if (set == nullptr) return;
    copy_ = *set;
    sigdelset(&copy_, SIGSEGV);
    set_ = &copy_;
  }
  operator const sigset_t*() const { return set_; }

private:
  sigset_t copy_{};
  const sigset_t* set_ = nullptr;
};

} // namespace

extern "C" {

#pragma GCC visibility push(default)

int sigaction(int signal, const struct sigaction* action, struct sigaction* before) noexcept {
  PARC_REAL(sigaction);
  const auto* const hooks = parc::preload::hooks();
  if (signal == SIGSEGV && hooks != nullptr && !hooks->in_library() &&
      hooks->set_program_action(action, before))
    return 0;
  if (action == nullptr || signal == SIGSEGV) return real(signal, action, before);
  struct sigaction changed = *action;
  sigdelset(&changed.sa_mask, SIGSEGV);
  return real(signal, &changed, before);
}

sighandler_t signal(int number, sighandler_t handler) noexcept {
  PARC_REAL(signal);
  if (number != SIGSEGV) return real(number, handler);
  struct sigaction action {
  }, before{};
  action.sa_handler = handler;
  action.sa_flags = SA_RESTART;
  if (sigaction(number, &action, &before) != 0) return SIG_ERR;
  return before.sa_handler;
}

int sigprocmask(int how, const sigset_t* set, sigset_t* before) noexcept {
  PARC_REAL(sigprocmask);
  return how == SIG_UNBLOCK ? real(how, set, before) : real(how, Unblocked(set), before);
}

int pthread_sigmask(int how, const sigset_t* set, sigset_t* before) noexcept {
  PARC_REAL(pthread_sigmask);
  return how == SIG_UNBLOCK ? real(how, set, before) : real(how, Unblocked(set), before);
}

#pragma GCC visibility pop
}
