// SPDX-License-Identifier: BSD-3-Clause
// The handler runs on the faulting thread, at the instruction that touched the page, with the program's locks
// as they are: it may wait, but takes no lock that code which touches program memory holds, and allocates
// nothing.
//
// Not blocked while it runs (SA_NODEFER): a handler of the program that interrupts its wait may touch another
// guarded page. On the alternate stack where the program made one: its own handler for stack overflows, which
// is called from here, may need that.
#include "client/early/fault.hpp"

#include "client/early/guards.hpp"

#include <atomic>
#include <cerrno>
#include <csignal>
#include <mutex>

namespace parc::client {
namespace {

std::atomic<Guards*> guards;
struct sigaction before; // written once, before `guards` is set for the first time

void crash_as_before(int signal) {
  struct sigaction action {};
  action.sa_handler = SIG_DFL;
  sigaction(signal, &action, nullptr);
}

// The instruction is executed again afterwards: without a handler it crashes, with the usual core.
void pass_on(int signal, siginfo_t* info, void* context) {
  if ((before.sa_flags & SA_SIGINFO) == 0 && (before.sa_handler == SIG_DFL || before.sa_handler == SIG_IGN))
    return crash_as_before(signal);
  sigset_t kept;
  pthread_sigmask(SIG_BLOCK, &before.sa_mask, &kept);
  if ((before.sa_flags & SA_NODEFER) == 0) {
    sigset_t this_one;
    sigemptyset(&this_one);
    sigaddset(&this_one, signal);
    pthread_sigmask(SIG_BLOCK, &this_one, nullptr);
  }
  if ((before.sa_flags & SA_SIGINFO) != 0)
    before.sa_sigaction(signal, info, context);
  else
    before.sa_handler(signal);
  pthread_sigmask(SIG_SETMASK, &kept, nullptr);
}

void on_fault(int signal, siginfo_t* info, void* context) {
  const int saved = errno;
  Guards* const ours = guards.load(std::memory_order_acquire);
  const bool again = ours != nullptr && info->si_code == SEGV_ACCERR && ours->resolve(info->si_addr);
  errno = saved;
  if (!again) pass_on(signal, info, context);
}

} // namespace

void catch_faults(Guards& of) {
  static std::once_flag once;
  if (guards.load(std::memory_order_acquire) == &of) return;
  std::call_once(once, [] {
    struct sigaction action {};
    action.sa_sigaction = on_fault;
    action.sa_flags = SA_SIGINFO | SA_NODEFER | SA_ONSTACK | SA_RESTART;
    sigemptyset(&action.sa_mask);
    sigaction(SIGSEGV, nullptr, &before);
    sigaction(SIGSEGV, &action, nullptr);
  });
  guards.store(&of, std::memory_order_release);
}

void forget_faults() {
  guards.store(nullptr, std::memory_order_release);
}

} // namespace parc::client
