// SPDX-License-Identifier: BSD-3-Clause
// The programs of erMPI 2005, blocking and released early, against their own sequential runs.
#include "tests/support/hosts.hpp"

#include <boost/test/unit_test.hpp>

namespace parc::test {
namespace {

void check_program(Hosts& hosts, const std::string& program, const std::vector<std::string>& size) {
  for (const char* placement : {"a,b", "a:2,b:2"})
    for (const char* release : {"off", "envelope", "full"}) {
      std::vector<std::string> words{"--hosts",
                                     placement,
                                     std::string("--early-release=") + release,
                                     PARC_TEST_BIN "/" + program,
                                     "--steps",
                                     "7",
                                     "--check"};
      words.insert(words.end(), size.begin(), size.end());
      Process job = hosts.run(words);
      const int status = job.wait();
      BOOST_TEST((status == 0 && job.errors() == ""),
                 program << " on " << placement << ", release " << release << ": status " << status << ": "
                         << job.output() << job.errors() << hosts.logs());
    }
}

} // namespace

BOOST_AUTO_TEST_SUITE(examples)

BOOST_AUTO_TEST_CASE(poisson) {
  Hosts hosts(2);
  check_program(hosts, "poisson", {"--size", "1030"});
}

BOOST_AUTO_TEST_CASE(nbody) {
  Hosts hosts(2);
  check_program(hosts, "nbody", {"--particles", "1001"});
}

BOOST_AUTO_TEST_CASE(m3) {
  Hosts hosts(2);
  check_program(hosts, "m3", {"--size", "130"});
}

BOOST_AUTO_TEST_SUITE_END()

} // namespace parc::test
