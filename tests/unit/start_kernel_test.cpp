// SPDX-License-Identifier: BSD-3-Clause
#include "system/start_kernel.hpp"
#include "tests/unit/lock_holder.hpp"
#include "tests/unit/scratch.hpp"

#include <boost/test/unit_test.hpp>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

namespace {

struct StartKernelFixture {
  parc::test::Scratch scratch;
  parc::RuntimeDir dir = parc::make_runtime_dir(scratch / "run").value();
};

} // namespace

BOOST_FIXTURE_TEST_SUITE(start_kernel, StartKernelFixture)

namespace {

void give_time() {
  usleep(20'000); // who connects is at it meanwhile; where it is later, this tests less
}

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

BOOST_AUTO_TEST_CASE(where_no_kernel_runs_there_is_no_connection) {
  BOOST_TEST(!parc::connect_to_kernel(scratch / "none").value());
  BOOST_TEST(!parc::connect_to_kernel(dir.path()).value());
}

BOOST_AUTO_TEST_CASE(a_kernel_that_is_about_to_be_ready_is_awaited) {
  const parc::test::LockHolder kernel(dir, [this] {
    give_time();
    open_door(dir.socket());
  });
  BOOST_TEST(static_cast<bool>(parc::connect_to_kernel(dir.path()).value()));
}

BOOST_AUTO_TEST_CASE(a_kernel_that_ends_is_awaited) {
  const parc::test::LockHolder kernel(dir, give_time);
  BOOST_TEST(!parc::connect_to_kernel(dir.path()).value());
  BOOST_TEST(!parc::running_kernel(dir).value().has_value());
}

BOOST_AUTO_TEST_SUITE_END()
