// SPDX-License-Identifier: BSD-3-Clause
#include "client/local/interrupt.hpp"

#include "client/base/in_library.hpp"

#include <cerrno>
#include <csignal>
#include <sched.h>

namespace parc::client {

thread_local bool Interrupts::in_call_ = false;
std::atomic<Inbox*> Interrupts::inbox_ = nullptr;
std::atomic<int> Interrupts::handlers_ = 0;
struct sigaction Interrupts::before_ {};

Interrupts::Interrupts(Inbox& inbox) {
  inbox_.store(&inbox);
  struct sigaction action {};
  action.sa_sigaction = handle;
  action.sa_flags = SA_SIGINFO | SA_RESTART | SA_ONSTACK;
  sigemptyset(&action.sa_mask);
  sigaction(Inbox::interrupt_signal, &action, &before_);
}

// A handler counts itself before it asks for the inbox.
Interrupts::~Interrupts() {
  struct sigaction now {};
  if (sigaction(Inbox::interrupt_signal, nullptr, &now) == 0 && (now.sa_flags & SA_SIGINFO) != 0 &&
      now.sa_sigaction == handle)
    sigaction(Inbox::interrupt_signal, &before_, nullptr);
  inbox_.store(nullptr);
  while (handlers_.load() != 0) sched_yield();
}

void Interrupts::handle(int signal, siginfo_t* info, void* context) {
  const int saved = errno;
  handlers_.fetch_add(1);
  if (Inbox* const inbox = inbox_.load()) {
    const InLibrary here;
    inbox->interrupted();
    if (!in_call_) inbox->arm();
  }
  handlers_.fetch_sub(1);
  if ((before_.sa_flags & SA_SIGINFO) != 0)
    before_.sa_sigaction(signal, info, context);
  else if (before_.sa_handler != SIG_DFL && before_.sa_handler != SIG_IGN)
    before_.sa_handler(signal);
  errno = saved;
}

} // namespace parc::client
