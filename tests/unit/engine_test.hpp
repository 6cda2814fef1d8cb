// SPDX-License-Identifier: BSD-3-Clause
// What all tests of the engine begin with.
#pragma once

#include "tests/sim/hosts.hpp"
#include "tests/sim/invariants.hpp"

#include <boost/test/data/monomorphic.hpp>
#include <boost/test/data/test_case.hpp>

BOOST_TEST_DONT_PRINT_LOG_VALUE(parc::protocol::Fault)
BOOST_TEST_DONT_PRINT_LOG_VALUE(parc::protocol::Departure)
BOOST_TEST_DONT_PRINT_LOG_VALUE(parc::protocol::Refusal)

namespace parc::sim {

namespace data = boost::unit_test::data;

// Both ranks on one host, or on two.
inline const auto distances = data::make({0u, 1u});

// Nothing of gets, puts and atomics is left, wherever they ended.
inline void check_idle(Hosts& hosts, std::uint32_t count = 2) {
  for (std::uint32_t h = 0; h < count; ++h) {
    BOOST_TEST(hosts.record(h).held == 0u);
    BOOST_TEST(Invariants::broken(hosts.engine(h)) == "");
  }
}

} // namespace parc::sim
