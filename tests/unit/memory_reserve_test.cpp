// SPDX-License-Identifier: BSD-3-Clause
#include "daemon/memory_reserve.hpp"

#include <boost/test/unit_test.hpp>
#include <memory>
#include <sys/resource.h>
#include <vector>

using namespace parc::daemon; // NOLINT

BOOST_AUTO_TEST_SUITE(memory_reserve)

// Sanitizers take all addresses, and end a process that has no memory.
#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
BOOST_AUTO_TEST_CASE(the_last_allocation_succeeds_by_it) {
  rlimit before{};
  BOOST_REQUIRE(getrlimit(RLIMIT_AS, &before) == 0);
  std::vector<std::unique_ptr<char[]>> taken;
  taken.reserve(1 << 16);
  {
    const MemoryReserve reserve;
    BOOST_TEST(!MemoryReserve::used());
    constexpr rlim_t little = 512 << 20;
    const rlimit low{std::min<rlim_t>(before.rlim_max, little), before.rlim_max};
    BOOST_REQUIRE(setrlimit(RLIMIT_AS, &low) == 0);
    while (!MemoryReserve::used() && taken.size() < taken.capacity())
      taken.push_back(std::make_unique_for_overwrite<char[]>(1 << 20));
    const bool filled = MemoryReserve::fill(); // what was given back is in use
    taken.clear();
    const bool filled_then = MemoryReserve::fill();
    BOOST_REQUIRE(setrlimit(RLIMIT_AS, &before) == 0);
    BOOST_TEST(!filled);
    BOOST_TEST(filled_then);
    BOOST_TEST(!MemoryReserve::used());
  }
}
#endif

BOOST_AUTO_TEST_SUITE_END()
