// SPDX-License-Identifier: BSD-3-Clause
#include "system/runtime_dir.hpp"
#include "system/start_kernel.hpp"
#include "tests/unit/scratch.hpp"

#include <boost/test/unit_test.hpp>
#include <csignal>
#include <fcntl.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

namespace {

struct Fixture {
  // A process that has the lock of a kernel, runs `then`, and ends with the test at the latest.
  template <class Then> void kernel(Then then) {
    int ready[2];
    BOOST_REQUIRE(pipe(ready) == 0);
    process = fork();
    if (process == 0) {
      const int file = open(dir.lock().c_str(), O_RDWR | O_CREAT, 0600);
      struct flock lock {};
      lock.l_type = F_WRLCK;
      if (fcntl(file, F_SETLK, &lock) != 0 || write(ready[1], "x", 1) != 1) _exit(1);
      usleep(20'000); // who connects is at it meanwhile; where it is later, this tests less
      then();
      _exit(0);
    }
    close(ready[1]);
    char byte = 0;
    BOOST_REQUIRE(read(ready[0], &byte, 1) == 1);
    close(ready[0]);
  }
  ~Fixture() {
    if (process <= 0) return;
    kill(process, SIGKILL);
    waitpid(process, nullptr, 0);
  }

  parc::test::Scratch scratch;
  parc::RuntimeDir dir = parc::make_runtime_dir(scratch / "run").value();
  pid_t process = 0;
};

void open_door(const std::string& path) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  path.copy(address.sun_path, sizeof address.sun_path - 1);
  const int door = socket(AF_UNIX, SOCK_STREAM, 0);
  if (bind(door, reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0 || listen(door, 1) != 0)
    _exit(1);
  pause();
}

} // namespace

BOOST_FIXTURE_TEST_SUITE(start_kernel, Fixture)

BOOST_AUTO_TEST_CASE(where_no_kernel_runs_there_is_no_connection) {
  BOOST_TEST(!parc::connect_to_kernel(scratch / "none").value());
  BOOST_TEST(!parc::connect_to_kernel(dir.path()).value());
}

BOOST_AUTO_TEST_CASE(a_kernel_that_is_about_to_be_ready_is_awaited) {
  kernel([this] { open_door(dir.socket()); });
  BOOST_TEST(static_cast<bool>(parc::connect_to_kernel(dir.path()).value()));
}

BOOST_AUTO_TEST_CASE(a_kernel_that_ends_is_awaited) {
  kernel([] {});
  BOOST_TEST(!parc::connect_to_kernel(dir.path()).value());
  BOOST_TEST(!parc::running_kernel(dir).value().has_value());
}

BOOST_AUTO_TEST_SUITE_END()
