// SPDX-License-Identifier: BSD-3-Clause
// SIGSEGV is libparc's and is never blocked; what the program sets for it is kept for faults of its own. That
// goes for each way in which the C library lets a program take or block it.
#include "client/preload/hooks.hpp"
#include "client/preload/unblocked.hpp"
#include "client/preload/undeclared.hpp"

#include <csignal>
#include <pthread.h>
#include <sys/signalfd.h>

namespace {

using parc::preload::settle;
using parc::preload::settle_begun;
using parc::preload::settle_value;
using parc::preload::Unblocked;

// The same of a set as BSD has it, a word.
int unblocked(int mask) {
  return mask & ~(1 << (SIGSEGV - 1));
}

// What the calls for a handler alone do, by the wrapper of sigaction.
sighandler_t set_handler(int number, sighandler_t handler, int flags) {
  struct sigaction action {
  }, before{};
  action.sa_handler = handler;
  action.sa_flags = flags;
  if (sigaction(number, &action, &before) != 0) return SIG_ERR;
  return before.sa_handler;
}

constexpr int of_system_v = static_cast<int>(SA_RESETHAND | SA_NODEFER);

} // namespace

extern "C" {

#pragma GCC visibility push(default)

// Old they are, and programs call them.
#pragma GCC diagnostic ignored "-Wdeprecated-declarations"

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
  return number == SIGSEGV ? set_handler(number, handler, SA_RESTART) : real(number, handler);
}

sighandler_t bsd_signal(int number, sighandler_t handler) {
  return signal(number, handler);
}

sighandler_t ssignal(int number, sighandler_t handler) noexcept {
  return signal(number, handler);
}

sighandler_t __sysv_signal(int number, sighandler_t handler) noexcept {
  PARC_REAL(__sysv_signal);
  return number == SIGSEGV ? set_handler(number, handler, of_system_v) : real(number, handler);
}

sighandler_t sysv_signal(int number, sighandler_t handler) noexcept {
  return __sysv_signal(number, handler);
}

sighandler_t sigset(int number, sighandler_t handler) noexcept {
  PARC_REAL(sigset);
  if (number != SIGSEGV) return real(number, handler);
  if (handler != SIG_HOLD) return set_handler(number, handler, 0);
  struct sigaction now {};
  return sigaction(number, nullptr, &now) == 0 ? now.sa_handler : SIG_ERR;
}

int sigignore(int number) noexcept {
  PARC_REAL(sigignore);
  if (number != SIGSEGV) return real(number);
  return set_handler(number, SIG_IGN, 0) == SIG_ERR ? -1 : 0;
}

int siginterrupt(int number, int interrupt) noexcept {
  PARC_REAL(siginterrupt);
  if (number != SIGSEGV) return real(number, interrupt);
  struct sigaction action {};
  if (sigaction(number, nullptr, &action) != 0) return -1;
  action.sa_flags = interrupt != 0 ? action.sa_flags & ~SA_RESTART : action.sa_flags | SA_RESTART;
  return sigaction(number, &action, nullptr);
}

int sigprocmask(int how, const sigset_t* set, sigset_t* before) noexcept {
  PARC_REAL(sigprocmask);
  settle_value(set);
  settle_value(before);
  return how == SIG_UNBLOCK ? real(how, set, before) : real(how, Unblocked(set), before);
}

int pthread_sigmask(int how, const sigset_t* set, sigset_t* before) noexcept {
  PARC_REAL(pthread_sigmask);
  settle_value(set);
  settle_value(before);
  return how == SIG_UNBLOCK ? real(how, set, before) : real(how, Unblocked(set), before);
}

int pthread_attr_setsigmask_np(pthread_attr_t* attributes, const sigset_t* set) {
  PARC_REAL(pthread_attr_setsigmask_np);
  return real(attributes, Unblocked(set));
}

int sighold(int number) noexcept {
  PARC_REAL(sighold);
  return number == SIGSEGV ? 0 : real(number);
}

int sigblock(int mask) noexcept {
  PARC_REAL(sigblock);
  return real(unblocked(mask));
}

int sigsetmask(int mask) noexcept {
  PARC_REAL(sigsetmask);
  return real(unblocked(mask));
}

int sigsuspend(const sigset_t* set) {
  PARC_REAL(sigsuspend);
  settle_value(set);
  return real(Unblocked(set));
}

int sigpause_of_bsd(int mask) {
  static auto* const real = parc::preload::next<int(int)>("sigpause");
  return real(unblocked(mask));
}

// A handler's frame is written there by the system.
int sigaltstack(const stack_t* stack, stack_t* before) noexcept {
  PARC_REAL(sigaltstack);
  settle_value(stack);
  settle_value(before);
  if (stack != nullptr && (stack->ss_flags & SS_DISABLE) == 0) settle(stack->ss_sp, stack->ss_size);
  return real(stack, before);
}

int sigpending(sigset_t* to) noexcept {
  PARC_REAL(sigpending);
  settle_value(to);
  return real(to);
}

int signalfd(int file, const sigset_t* set, int flags) noexcept {
  PARC_REAL(signalfd);
  settle_value(set);
  return real(file, set, flags);
}

int pidfd_send_signal(int process, int signal, siginfo_t* info, unsigned flags) noexcept {
  PARC_REAL(pidfd_send_signal);
  settle_begun();
  settle_value(info);
  return real(process, signal, info, flags);
}

#pragma GCC visibility pop
}
