// SPDX-License-Identifier: BSD-3-Clause
#include "daemon/job/child_process.hpp"

#include "system/fd.hpp"

#include <array>
#include <boost/test/unit_test.hpp>
#include <cerrno>
#include <csignal>
#include <sys/wait.h>
#include <unistd.h>

namespace parc::daemon {
namespace {

// A process that has no exec behind it until it may go on.
class Child {
public:
  Child() {
    int ends[2];
    BOOST_REQUIRE(pipe(ends) == 0);
    waits_.reset(ends[0]);
    go_on_.reset(ends[1]);
    auto made = make_process([this](const Ready& ready) {
      ready();
      char byte = 0;
      (void)!read(waits_.get(), &byte, 1);
      _exit(byte);
    });
    BOOST_REQUIRE_MESSAGE(made, "no process");
    id_ = made.value();
  }

  [[nodiscard]] pid_t id() const { return id_; }
  void go_on(char status) { BOOST_REQUIRE(write(go_on_.get(), &status, 1) == 1); }
  int end() {
    int status = 0;
    pid_t ended = 0;
    do ended = waitpid(id_, &status, 0);
    while (ended < 0 && errno == EINTR);
    BOOST_REQUIRE(ended == id_);
    return status;
  }

private:
  Fd waits_, go_on_;
  pid_t id_ = -1;
};

} // namespace

BOOST_AUTO_TEST_SUITE(child_process)

BOOST_AUTO_TEST_CASE(one_that_does_not_come_to_exec_holds_up_nobody) {
  std::array<Child, 3> children;
  for (Child& child : children) BOOST_TEST(kill(child.id(), 0) == 0);
  for (std::size_t i = children.size(); i-- > 0;) {
    children[i].go_on(static_cast<char>(7 + i));
    const int status = children[i].end();
    BOOST_TEST(WIFEXITED(status));
    BOOST_TEST(WEXITSTATUS(status) == 7 + static_cast<int>(i));
  }
}

BOOST_AUTO_TEST_CASE(one_that_is_killed_before_exec_is_gone) {
  Child child;
  BOOST_TEST(kill(child.id(), SIGKILL) == 0);
  const int status = child.end();
  BOOST_TEST(WIFSIGNALED(status));
  Child next;
  next.go_on(0);
  BOOST_TEST(next.end() == 0);
}

// Though it was never ready.
BOOST_AUTO_TEST_CASE(one_that_ends_at_once_has_a_number) {
  const auto made = make_process([](const Ready&) { _exit(3); });
  BOOST_REQUIRE_MESSAGE(made, "no process");
  int status = 0;
  while (waitpid(made.value(), &status, 0) < 0 && errno == EINTR) {
  }
  BOOST_TEST(WEXITSTATUS(status) == 3);
}

BOOST_AUTO_TEST_SUITE_END()

} // namespace parc::daemon
