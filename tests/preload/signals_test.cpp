// SPDX-License-Identifier: BSD-3-Clause
// No call of the C library takes SIGSEGV from who has it, or blocks it: what the system then says is asked,
// not the library. Each in a process of its own.
#include "client/early/hooks.hpp"
#include "client/preload/undeclared.hpp"

#include <atomic>
#include <boost/test/unit_test.hpp>
#include <csignal>
#include <functional>
#include <poll.h>
#include <pthread.h>
#include <sys/epoll.h>
#include <sys/select.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#pragma GCC diagnostic ignored "-Wdeprecated-declarations"

extern "C" void parc_early_offer_3(const parc::client::EarlyHooks* hooks);

namespace {

void ours(int) {}
void of_program(int) {}

struct sigaction kept;

const std::atomic<std::size_t> nothing_guarded = 0;
const parc::client::EarlyHooks hooks{
    .any = [] { return false; },
    .in_library = [] { return false; },
    .settle = [](const void*, std::size_t) {},
    .settle_begun = [] {},
    .settle_all = [] {},
    .guarded = &nothing_guarded,
    .before_change = [](const void*, std::size_t, parc::client::PageChange) { return true; },
    .set_program_action =
        [](const struct sigaction* action, struct sigaction* before) {
          if (before != nullptr) *before = kept;
          if (action != nullptr) kept = *action;
          return true;
        },
    .before_fork = [] {},
    .after_fork_in_parent = [] {},
    .after_fork_in_child = [] {},
};

// As the system has them.
bool blocked() {
  unsigned long set = 0;
  syscall(SYS_rt_sigprocmask, SIG_BLOCK, nullptr, &set, sizeof set);
  return (set & (1UL << (SIGSEGV - 1))) != 0;
}

bool taken() {
  struct {
    void (*handler)(int);
    unsigned long rest[3];
  } action{};
  syscall(SYS_rt_sigaction, SIGSEGV, nullptr, &action, sizeof(unsigned long));
  return action.handler != ours;
}

// In a process where SIGSEGV is `ours`, and kept for the program is what it set.
bool holds(const std::function<bool()>& what) {
  const pid_t child = fork();
  if (child == 0) {
    struct sigaction action {};
    action.sa_handler = ours;
    sigaction(SIGSEGV, &action, nullptr);
    kept.sa_handler = SIG_DFL;
    parc_early_offer_3(&hooks);
    _exit(what() ? 0 : 1);
  }
  int status = -1;
  BOOST_TEST(waitpid(child, &status, 0) == child);
  return status == 0;
}

BOOST_AUTO_TEST_SUITE(segmentation_faults)

BOOST_AUTO_TEST_CASE(are_not_taken) {
  struct Row {
    const char* name;
    sighandler_t (*set)(int, sighandler_t) noexcept(false);
    int flags; // with which the program's handler is kept
  };
  const int of_system_v = static_cast<int>(SA_RESETHAND | SA_NODEFER);
  const Row rows[] = {
      {"signal", signal, SA_RESTART},
      {"bsd_signal", bsd_signal, SA_RESTART},
      {"ssignal", ssignal, SA_RESTART},
      {"sysv_signal", sysv_signal, of_system_v},
      {"sigset", sigset, 0},
      {"__sysv_signal", __sysv_signal, of_system_v},
      {"sigaction",
       [](int number, sighandler_t handler) {
         struct sigaction action {
         }, before{};
         action.sa_handler = handler;
         sigaction(number, &action, &before);
         return before.sa_handler;
       },
       0},
  };
  for (const Row& row : rows)
    BOOST_TEST(holds([&] {
                 const bool first = row.set(SIGSEGV, of_program) == SIG_DFL;
                 const bool right = kept.sa_handler == of_program && kept.sa_flags == row.flags && !taken();
                 return first && right && row.set(SIGSEGV, SIG_IGN) == of_program;
               }),
               row.name);
  BOOST_TEST(holds([] { return sigignore(SIGSEGV) == 0 && kept.sa_handler == SIG_IGN && !taken(); }));
  BOOST_TEST(holds([] {
    kept.sa_flags = SA_RESTART;
    return siginterrupt(SIGSEGV, 1) == 0 && kept.sa_flags == 0 && siginterrupt(SIGSEGV, 0) == 0 &&
           kept.sa_flags == SA_RESTART && !taken();
  }));
}

BOOST_AUTO_TEST_CASE(are_not_blocked) {
  static sigset_t all;
  sigfillset(&all);
  const std::pair<const char*, std::function<void()>> rows[] = {
      {"sigprocmask", [] { sigprocmask(SIG_BLOCK, &all, nullptr); }},
      {"sigprocmask of all", [] { sigprocmask(SIG_SETMASK, &all, nullptr); }},
      {"pthread_sigmask", [] { pthread_sigmask(SIG_BLOCK, &all, nullptr); }},
      {"sigblock", [] { sigblock(~0); }},
      {"sigsetmask", [] { sigsetmask(~0); }},
      {"sighold", [] { sighold(SIGSEGV); }},
      {"sigset", [] { sigset(SIGSEGV, SIG_HOLD); }},
      {"the mask of a handler",
       [] {
         struct sigaction action {};
         action.sa_handler = [](int) { _exit(blocked() ? 1 : 0); };
         action.sa_mask = all;
         sigaction(SIGUSR1, &action, nullptr);
         raise(SIGUSR1);
       }},
      {"the mask of a thread",
       [] {
         pthread_attr_t attributes;
         pthread_attr_init(&attributes);
         pthread_attr_setsigmask_np(&attributes, &all);
         pthread_t thread{};
         const auto look = [](void*) -> void* { _exit(blocked() ? 1 : 0); };
         pthread_create(&thread, &attributes, look, nullptr);
         pthread_join(thread, nullptr);
       }},
  };
  for (const auto& [name, call] : rows)
    BOOST_TEST(holds([call = call] {
                 call();
                 return !blocked();
               }),
               name);
}

// A signal that waited is taken under the mask that the call has for its time.
BOOST_AUTO_TEST_CASE(are_not_blocked_while_something_is_waited_for) {
  static sigset_t mask;
  sigfillset(&mask);
  sigdelset(&mask, SIGUSR1);
  static const timespec patience{20, 0};
  static pollfd none{-1, 0, 0};
  static epoll_event event;
  const std::pair<const char*, std::function<void()>> rows[] = {
      {"sigsuspend", [] { sigsuspend(&mask); }},
      {"sigpause", [] { sigpause_of_bsd(~(1 << (SIGUSR1 - 1))); }},
      {"pselect", [] { pselect(0, nullptr, nullptr, nullptr, &patience, &mask); }},
      {"ppoll", [] { ppoll(&none, 1, &patience, &mask); }},
      {"__ppoll_chk", [] { __ppoll_chk(&none, 1, &patience, &mask, sizeof none); }},
      {"epoll_pwait", [] { epoll_pwait(epoll_create1(0), &event, 1, 20000, &mask); }},
      {"epoll_pwait2", [] { epoll_pwait2(epoll_create1(0), &event, 1, &patience, &mask); }},
  };
  for (const auto& [name, call] : rows)
    BOOST_TEST(holds([call = call] {
                 sigset_t one;
                 sigemptyset(&one);
                 sigaddset(&one, SIGUSR1);
                 sigprocmask(SIG_BLOCK, &one, nullptr);
                 signal(SIGUSR1, [](int) { _exit(blocked() ? 1 : 0); });
                 raise(SIGUSR1);
                 call();
                 return false; // nothing came
               }),
               name);
}

BOOST_AUTO_TEST_SUITE_END()

} // namespace
