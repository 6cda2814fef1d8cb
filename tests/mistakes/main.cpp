// SPDX-License-Identifier: BSD-3-Clause
#define BOOST_TEST_MODULE mistakes
#define BOOST_TEST_NO_MAIN
#include "tests/support/namespaces.hpp"

#include <boost/test/unit_test.hpp>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <sys/mount.h>
#include <sys/prctl.h>

constexpr int status_skipped = 77; // CMakeLists.txt tells ctest

int main(int argc, char** argv) {
  if (!parc::test::enter_namespaces(CLONE_NEWIPC | CLONE_NEWNS) ||
      mount(nullptr, "/", nullptr, MS_REC | MS_PRIVATE, nullptr) != 0) {
    std::printf(
        "skipped: no IPC and mount namespace of its own, as neither root nor user namespaces are here (%s)\n",
        std::strerror(errno));
    return status_skipped;
  }
  prctl(PR_SET_CHILD_SUBREAPER, 1); // whatever is left running becomes a child of this process
  return boost::unit_test::unit_test_main(init_unit_test, argc, argv);
}
