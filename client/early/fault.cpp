// SPDX-License-Identifier: BSD-3-Clause
// The handler runs on the faulting thread, at the instruction that touched the page, with the program's locks
// as they are: it may wait, but takes no lock that code which touches program memory holds, and allocates
// nothing.
//
// Not blocked while it runs (SA_NODEFER): a handler of the program that interrupts its wait may touch another
// guarded page. On the alternate stack where the program made one: its own handler for stack overflows, which
// is called from here, may need that.
#include "client/early/fault.hpp"

#include "client/base/in_library.hpp"
#include "client/base/pages.hpp"
#include "client/early/guards.hpp"

#include <atomic>
#include <cerrno>
#include <csignal>
#include <mutex>
#include <sys/mman.h>
#include <ucontext.h>

namespace parc::client {
namespace {

std::atomic<Guards*> guards;
std::atomic<void*> measured; // a page, while the cost of a fault is measured

// The program's action. The handler reads the one that `action` names; a change fills the other. Two changes
// while one handler copies would be the program's own race. What SA_RESETHAND leaves is a third.
struct sigaction actions[2];
const struct sigaction usual_action {};
std::atomic<const struct sigaction*> action; // nullptr: SIGSEGV is not ours yet
std::mutex change;

void crash_as_before(int signal) {
  const InLibrary here;
  struct sigaction usual {};
  usual.sa_handler = SIG_DFL;
  sigaction(signal, &usual, nullptr);
}

// The instruction is executed again afterwards: without a handler it crashes, with the usual core. A signal
// that somebody sent is not sent again by that.
void pass_on(int signal, siginfo_t* info, void* context) {
  const struct sigaction* const current = action.load(std::memory_order_acquire);
  const struct sigaction program = *current;
  const bool sent = info->si_code <= 0, plain = (program.sa_flags & SA_SIGINFO) == 0;
  if (plain && program.sa_handler == SIG_IGN && sent) return;
  if (plain && (program.sa_handler == SIG_DFL || program.sa_handler == SIG_IGN)) {
    crash_as_before(signal);
    if (sent) raise(signal);
    return;
  }
  if ((program.sa_flags & static_cast<int>(SA_RESETHAND)) != 0) {
    const struct sigaction* expected = current;
    action.compare_exchange_strong(expected, &usual_action, std::memory_order_acq_rel);
  }
  sigset_t kept;
  sigset_t blocked = program.sa_mask;
  if ((program.sa_flags & SA_NODEFER) == 0) sigaddset(&blocked, signal);
  // By hand: the handler may jump out of here, over an object's destructor.
  pthread_sigmask(SIG_BLOCK, &blocked, &kept);
  if ((program.sa_flags & SA_SIGINFO) != 0)
    program.sa_sigaction(signal, info, context);
  else
    program.sa_handler(signal);
  pthread_sigmask(SIG_SETMASK, &kept, nullptr);
}

// The instruction that touched the page.
std::uintptr_t instruction_of(const void* context) {
  const auto& registers = static_cast<const ucontext_t*>(context)->uc_mcontext;
#if defined(__x86_64__)
  return static_cast<std::uintptr_t>(registers.gregs[REG_RIP]);
#elif defined(__aarch64__)
  return registers.pc;
#endif
}

bool resolve(const void* address, const void* context) {
  const InLibrary here;
  if (void* const page = measured.load(std::memory_order_relaxed); page != nullptr && page == address) {
    measured.store(nullptr, std::memory_order_relaxed);
    return mprotect(page, page_size(), PROT_READ | PROT_WRITE) == 0;
  }
  Guards* const ours = guards.load(std::memory_order_acquire);
  return ours != nullptr && ours->resolve(address, instruction_of(context));
}

// What this thread passes on. A handler that was installed over ours may have kept ours, and hand the same
// fault back from deeper in the stack. (One that jumped out of its handler comes again from no deeper.)
struct Passing {
  const void* context = nullptr;
  std::uintptr_t frame = 0;
};
__attribute__((tls_model("initial-exec"))) thread_local Passing passing;

void on_fault(int signal, siginfo_t* info, void* context) {
  const int saved = errno;
  const bool again = info->si_code == SEGV_ACCERR && resolve(info->si_addr, context);
  errno = saved;
  if (again) return;
  const std::uintptr_t frame = address_of(__builtin_frame_address(0));
  if (passing.context == context && frame < passing.frame) return crash_as_before(signal);
  passing = {context, frame};
  pass_on(signal, info, context);
  passing = {};
}

} // namespace

void catch_faults(Guards& of) {
  if (guards.load(std::memory_order_acquire) == &of) return;
  {
    const std::lock_guard hold(change);
    struct sigaction before {};
    sigaction(SIGSEGV, nullptr, &before);
    // Not yet, or no longer since the last context.
    if ((before.sa_flags & SA_SIGINFO) == 0 || before.sa_sigaction != on_fault) {
      struct sigaction* const other =
          action.load(std::memory_order_relaxed) == &actions[0] ? &actions[1] : &actions[0];
      *other = before;
      action.store(other, std::memory_order_release);
      struct sigaction ours {};
      ours.sa_sigaction = on_fault;
      ours.sa_flags = SA_SIGINFO | SA_NODEFER | SA_ONSTACK | SA_RESTART;
      sigemptyset(&ours.sa_mask);
      sigaction(SIGSEGV, &ours, nullptr);
    }
  }
  guards.store(&of, std::memory_order_release);
}

void open_when_touched(void* page) {
  measured.store(page, std::memory_order_relaxed);
}

Guards* caught_guards() {
  return guards.load(std::memory_order_acquire);
}

bool set_program_action(const struct sigaction* wanted, struct sigaction* before) {
  const std::lock_guard hold(change);
  const struct sigaction* const current = action.load(std::memory_order_relaxed);
  if (current == nullptr) return false;
  if (before != nullptr) *before = *current;
  if (wanted == nullptr) return true;
  struct sigaction* const other = current == &actions[0] ? &actions[1] : &actions[0];
  *other = *wanted;
  action.store(other, std::memory_order_release);
  return true;
}

void forget_faults() {
  guards.store(nullptr, std::memory_order_release);
}

} // namespace parc::client
