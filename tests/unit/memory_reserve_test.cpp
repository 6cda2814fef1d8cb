// SPDX-License-Identifier: BSD-3-Clause
#include "daemon/base/memory_reserve.hpp"

#include <boost/test/unit_test.hpp>
#include <fstream>
#include <memory>
#include <string>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>
#include <vector>

BOOST_AUTO_TEST_SUITE(memory_reserve)

using namespace parc::daemon; // NOLINT

// Sanitizers take all addresses, and end a process that has no memory.
#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
// In a process of its own, which has little: its exit status says what was wrong.
int use_up_memory() {
  std::ifstream status("/proc/self/status");
  rlim_t kib = 0;
  for (std::string word; status >> word;)
    if (word == "VmSize:") status >> kib;
  std::vector<std::unique_ptr<char[]>> taken;
  taken.reserve(1 << 10);
  const MemoryReserve reserve;
  if (MemoryReserve::used()) return 1;
  const rlimit low{(kib + 128 * 1024) * 1024, RLIM_INFINITY};
  if (prlimit(0, RLIMIT_AS, &low, nullptr) != 0) return 2;
  while (!MemoryReserve::used() && taken.size() < taken.capacity())
    taken.push_back(std::make_unique_for_overwrite<char[]>(1 << 20));
  if (!MemoryReserve::used()) return 3;
  if (MemoryReserve::fill()) return 4; // what was given back is in use
  taken.clear();
  return MemoryReserve::fill() && !MemoryReserve::used() ? 0 : 5;
}

BOOST_AUTO_TEST_CASE(the_last_allocation_succeeds_by_it) {
  const pid_t child = fork();
  BOOST_REQUIRE(child >= 0);
  if (child == 0) _exit(use_up_memory());
  int status = 0;
  BOOST_REQUIRE(waitpid(child, &status, 0) == child);
  BOOST_TEST((WIFEXITED(status) && WEXITSTATUS(status) == 0), status);
}
#endif

BOOST_AUTO_TEST_SUITE_END()
