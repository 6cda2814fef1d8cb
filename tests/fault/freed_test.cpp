// SPDX-License-Identifier: BSD-3-Clause
// Memory that goes while it is exposed. The program checks what it is told (tests/support/programs).
#include "tests/support/hosts.hpp"

#include <boost/test/data/monomorphic.hpp>
#include <boost/test/data/test_case.hpp>
#include <boost/test/unit_test.hpp>

namespace parc::test {

BOOST_AUTO_TEST_SUITE(freed)

BOOST_DATA_TEST_CASE(memory_that_is_exposed, boost::unit_test::data::make({"direct", "kernel"}), way) {
  Hosts hosts(2, {"--local", way});
  for (const char* placement : {"a,b", "a:2"}) {
    Process job = hosts.run({"--hosts", placement, PARC_TEST_PROGRAMS "/freed_windows"});
    BOOST_TEST(job.wait() == 0, placement << ": " << job << hosts);
    BOOST_TEST(job.errors() == "");
  }
}

BOOST_AUTO_TEST_SUITE_END()

} // namespace parc::test
