// SPDX-License-Identifier: BSD-3-Clause
#include "daemon/base/instance.hpp"
#include "tests/unit/scratch.hpp"

#include <boost/test/unit_test.hpp>
#include <csignal>
#include <fcntl.h>
#include <filesystem>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

namespace parc::daemon {
namespace {

struct InstanceFixture {
  // Detached kernels become our children when their parent ends, so that none outlives its test.
  InstanceFixture() { prctl(PR_SET_CHILD_SUBREAPER, 1); }
  ~InstanceFixture() {
    while (waitpid(-1, nullptr, 0) > 0) {
    }
    prctl(PR_SET_CHILD_SUBREAPER, 0);
  }
  // Runs `body` in a child, whose stderr goes to a file; the exit status.
  template <class Body> int in_a_child(Body body) const {
    const pid_t child = fork();
    if (child == 0) {
      const int errors = open((scratch / "stderr").c_str(), O_WRONLY | O_CREAT | O_TRUNC, 0600);
      dup2(errors, STDERR_FILENO);
      _exit(body());
    }
    int status = -1;
    waitpid(child, &status, 0);
    return WIFEXITED(status) ? WEXITSTATUS(status) : 1000 + WTERMSIG(status);
  }
  std::string errors() const { return test::read_file(scratch / "stderr"); }

  test::Scratch scratch;
  RuntimeDir dir = make_runtime_dir(scratch / "run").value();
};

} // namespace

BOOST_FIXTURE_TEST_SUITE(instance, InstanceFixture)

namespace {

bool exists(const std::string& path) {
  return access(path.c_str(), F_OK) == 0;
}

} // namespace

BOOST_AUTO_TEST_CASE(a_second_kernel_is_refused_and_told_who_is_first) {
  {
    const auto first = Instance::acquire(dir);
    BOOST_REQUIRE(first.has_value());
    BOOST_TEST(test::read_file(dir.pid_file()) == fmt::format("{}\n", getpid()));
    const int status = in_a_child([&] {
      const auto second = Instance::acquire(dir);
      if (second) return 0;
      fmt::print(stderr, "{}", second.error().text);
      std::fflush(stderr);
      return second.error().code;
    });
    BOOST_TEST(status == EEXIST);
    BOOST_TEST(errors() == fmt::format("a parcd already runs on {0}: process {1}; use it, stop it (parc stop "
                                       "--runtime-dir {0}), or choose another --runtime-dir",
                                       dir.path(), getpid()));
    BOOST_TEST(exists(dir.pid_file()));
  }
  BOOST_TEST(!exists(dir.pid_file()));
  BOOST_TEST(in_a_child([&] { return Instance::acquire(dir).has_value() ? 0 : 1; }) == 0);
}

BOOST_AUTO_TEST_CASE(a_kernel_that_was_killed_leaves_nothing_in_the_way) {
  const int killed = in_a_child([&]() -> int {
    const auto kernel = Instance::acquire(dir);
    test::write_file(dir.socket(), "");
    return raise(SIGKILL);
  });
  BOOST_TEST(killed == 1000 + SIGKILL);
  BOOST_TEST(exists(dir.socket()));
  const auto next = Instance::acquire(dir);
  BOOST_REQUIRE(next.has_value());
  BOOST_TEST(!exists(dir.socket()));
}

// A runtime directory may be anything of its user's.
BOOST_AUTO_TEST_CASE(what_jobs_have_left_goes_and_nothing_else_does) {
  const std::string left = dir.job_directory(0x4711);
  std::filesystem::create_directories(left + "/of/ranks");
  const std::vector<std::string> others{"parc-mpi-tutorial", "parc-mpi-00000000000047112", "parc-mpi-"};
  for (const std::string& other : others) std::filesystem::create_directory(dir.path() + "/" + other);
  const std::string link = dir.job_directory(0x4712);
  std::filesystem::create_directory_symlink(dir.path() + "/" + others[0], link);
  BOOST_REQUIRE(Instance::acquire(dir));
  BOOST_TEST(!exists(left));
  BOOST_TEST(exists(link));
  for (const std::string& other : others) BOOST_TEST(exists(dir.path() + "/" + other), other);
}

BOOST_AUTO_TEST_CASE(a_forked_child_neither_holds_nor_removes) {
  int release[2];
  BOOST_REQUIRE(pipe2(release, O_CLOEXEC) == 0);
  pid_t child = -1;
  {
    auto kernel = Instance::acquire(dir);
    child = fork();
    if (child == 0) {
      char byte;
      close(release[1]);
      (void)!read(release[0], &byte, 1);
      _exit(0);
    }
    const int status = in_a_child([&] {
      { const Instance inherited = std::move(kernel).value(); }
      return 0;
    });
    BOOST_TEST(status == 0);
    BOOST_TEST(exists(dir.pid_file()));
  }
  BOOST_TEST(Instance::acquire(dir).has_value()); // although the child lives
  close(release[1]);
  close(release[0]);
  waitpid(child, nullptr, 0);
}

BOOST_AUTO_TEST_CASE(detaching_ends_the_parent_when_the_kernel_is_ready) {
  int pid_pipe[2];
  BOOST_REQUIRE(pipe2(pid_pipe, O_CLOEXEC) == 0);
  int go[2];
  BOOST_REQUIRE(pipe2(go, O_CLOEXEC) == 0);
  const int status = in_a_child([&] {
    auto readiness = Readiness::detach(scratch / "log/kernel.log");
    if (!readiness || !readiness.value().detached()) return 9;
    const pid_t self = getpid();
    if (write(pid_pipe[1], &self, sizeof self) != sizeof self || getsid(0) != self) return 8;
    fmt::print(stderr, "in the log\n");
    std::fflush(stderr);
    readiness.value().ready();
    close(go[1]);
    char byte;
    (void)!read(go[0], &byte, 1); // until the test lets go
    return 7;
  });
  BOOST_TEST(status == 0);
  pid_t kernel = -1;
  BOOST_REQUIRE(read(pid_pipe[0], &kernel, sizeof kernel) == sizeof kernel);
  BOOST_TEST(kill(kernel, 0) == 0);
  BOOST_TEST(test::read_file(scratch / "log/kernel.log") == "in the log\n");
  for (const int end : {go[0], go[1], pid_pipe[0], pid_pipe[1]}) close(end);
  int ended = -1;
  BOOST_REQUIRE(waitpid(kernel, &ended, 0) == kernel);
  BOOST_TEST(WEXITSTATUS(ended) == 7);
}

BOOST_AUTO_TEST_CASE(the_parent_prints_what_went_wrong) {
  const int status = in_a_child([&] {
    auto readiness = Readiness::detach(scratch / "kernel.log");
    if (!readiness) return 9;
    readiness.value().failed(error(EADDRINUSE, "cannot listen on port 7272"));
    return 1;
  });
  BOOST_TEST(status == 1);
  BOOST_TEST(errors() == "parcd: cannot listen on port 7272\n");
}

BOOST_AUTO_TEST_CASE(the_parent_tells_how_a_silent_child_ended) {
  const int status = in_a_child([&] {
    auto readiness = Readiness::detach(scratch / "kernel.log");
    return raise(SIGKILL);
  });
  BOOST_TEST(status == 1);
  BOOST_TEST(errors() ==
             fmt::format("parcd: the kernel ended before it was ready (killed by signal 9); its log is {}\n",
                         scratch / "kernel.log"));
}

// Who started it has its stdout and stderr, until it is ready or has said why it is not.
BOOST_AUTO_TEST_CASE(an_announced_kernel_closes_its_output_when_it_is_ready) {
  int output[2], go[2];
  BOOST_REQUIRE(pipe2(output, O_CLOEXEC) == 0);
  BOOST_REQUIRE(pipe2(go, O_CLOEXEC) == 0);
  const pid_t child = fork();
  if (child == 0) {
    dup2(output[1], STDOUT_FILENO);
    close(output[1]);
    close(go[1]);
    auto readiness = Readiness::announce(scratch / "log/kernel.log");
    if (!readiness || readiness.value().detached() || getppid() == 1) _exit(9);
    fmt::print(stderr, "in the log\n");
    std::fflush(stderr);
    char byte;
    (void)!read(go[0], &byte, 1);
    readiness.value().ready();
    (void)!read(go[0], &byte, 1); // until the test lets go
    _exit(7);
  }
  close(output[1]);
  close(go[0]);
  fcntl(output[0], F_SETFL, O_NONBLOCK);
  char byte = 0;
  BOOST_TEST((read(output[0], &byte, 1) < 0 && errno == EAGAIN)); // it is not ready
  fcntl(output[0], F_SETFL, 0);
  BOOST_REQUIRE(write(go[1], &byte, 1) == 1);
  BOOST_TEST(read(output[0], &byte, 1) == 0);
  close(go[1]);
  int ended = -1;
  BOOST_REQUIRE(waitpid(child, &ended, 0) == child);
  BOOST_TEST(WEXITSTATUS(ended) == 7);
  BOOST_TEST(test::read_file(scratch / "log/kernel.log") == "in the log\n");
  close(output[0]);
}

BOOST_AUTO_TEST_CASE(an_announced_kernel_says_what_went_wrong) {
  const int status = in_a_child([&] {
    auto readiness = Readiness::announce(scratch / "kernel.log");
    if (!readiness) return 9;
    readiness.value().failed(error(EADDRINUSE, "cannot listen on port 7272"));
    return 1;
  });
  BOOST_TEST(status == 1);
  BOOST_TEST(errors() == "parcd: cannot listen on port 7272\n");
}

BOOST_AUTO_TEST_CASE(a_log_that_cannot_be_opened_is_told_before_anything_starts) {
  test::write_file(scratch / "file", "");
  const auto refused = Readiness::detach(scratch / "file/kernel.log");
  BOOST_REQUIRE(!refused.has_value());
  BOOST_TEST(refused.error().text.find("file") != std::string::npos);
}

BOOST_AUTO_TEST_CASE(systemd_is_told) {
  const std::string path = scratch / "notify";
  for (const std::string& name : {path, "@" + path}) {
    const Fd listener(socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0));
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    name.copy(address.sun_path, sizeof address.sun_path - 1);
    if (name.front() == '@') address.sun_path[0] = '\0';
    const auto length = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + name.size());
    BOOST_REQUIRE(bind(listener.get(), reinterpret_cast<const sockaddr*>(&address), length) == 0);
    test::Environment environment;
    environment.set("NOTIFY_SOCKET", name);
    Readiness readiness;
    readiness.ready();
    readiness.stopping();
    for (const std::string_view wanted : {"READY=1", "STOPPING=1"}) {
      char buffer[64] = {};
      BOOST_REQUIRE(recv(listener.get(), buffer, sizeof buffer, MSG_DONTWAIT) > 0);
      BOOST_TEST(std::string_view(buffer) == wanted);
    }
  }
}

BOOST_AUTO_TEST_SUITE_END()

} // namespace parc::daemon
