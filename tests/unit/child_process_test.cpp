// SPDX-License-Identifier: BSD-3-Clause
// Each case is a process of its own: the threads that make_process leaves stay, and other tests fork.
#include "daemon/process/child_process.hpp"

#include "system/fd.hpp"

#include <array>
#include <boost/test/unit_test.hpp>
#include <cerrno>
#include <csignal>
#include <sys/wait.h>
#include <unistd.h>

namespace parc::daemon {

BOOST_AUTO_TEST_SUITE(child_process)

namespace {

int wait_for(pid_t process) {
  int status = 0;
  while (waitpid(process, &status, 0) < 0 && errno == EINTR) {
  }
  return status;
}

bool exits_with(pid_t process, int expected) {
  const int status = wait_for(process);
  return WIFEXITED(status) && WEXITSTATUS(status) == expected;
}

// Has no exec behind it until it may go on.
class Child {
public:
  Child() {
    int ends[2];
    if (pipe(ends) != 0) return;
    waits_.reset(ends[0]);
    go_on_.reset(ends[1]);
    const auto made = make_process([this](const Ready& ready) {
      ready();
      char byte = 0;
      (void)!read(waits_.get(), &byte, 1);
      _exit(byte);
    });
    if (made) id_ = made.value();
  }

  [[nodiscard]] pid_t id() const { return id_; }
  [[nodiscard]] bool lives() const { return id_ > 0 && kill(id_, 0) == 0; }
  [[nodiscard]] bool goes_on(char status) {
    return write(go_on_.get(), &status, 1) == 1 && exits_with(id_, status);
  }

private:
  Fd waits_, go_on_;
  pid_t id_ = -1;
};

template <class Check> bool in_a_process(Check check) {
  const pid_t process = fork();
  if (process == 0) _exit(check() ? 0 : 1);
  return exits_with(process, 0);
}

} // namespace

BOOST_AUTO_TEST_CASE(one_that_does_not_come_to_exec_holds_up_nobody) {
  BOOST_TEST(in_a_process([] {
    std::array<Child, 3> children;
    bool good = true;
    for (const Child& child : children) good = good && child.lives();
    for (std::size_t i = children.size(); i-- > 0;)
      good = good && children[i].goes_on(static_cast<char>(7 + i));
    return good;
  }));
}

BOOST_AUTO_TEST_CASE(one_that_is_killed_before_exec_is_gone) {
  BOOST_TEST(in_a_process([] {
    const Child child;
    if (!child.lives() || kill(child.id(), SIGKILL) != 0 || !WIFSIGNALED(wait_for(child.id()))) return false;
    Child next;
    return next.goes_on(0);
  }));
}

// Though it was never ready.
BOOST_AUTO_TEST_CASE(one_that_ends_at_once_has_a_number) {
  BOOST_TEST(in_a_process([] {
    const auto made = make_process([](const Ready&) { _exit(3); });
    return made && exits_with(made.value(), 3);
  }));
}

BOOST_AUTO_TEST_SUITE_END()

} // namespace parc::daemon
