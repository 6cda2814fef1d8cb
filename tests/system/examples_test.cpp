// SPDX-License-Identifier: BSD-3-Clause
// The programs of erMPI 2005, blocking and released early, and Cannon's algorithm, blocking and hidden,
// against their own sequential runs.
#include "tests/support/hosts.hpp"

#include <boost/test/unit_test.hpp>
#include <sstream>

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
      BOOST_TEST((status == 0 && job.errors() == ""), program << " on " << placement << ", release "
                                                              << release << ": status " << status << ": "
                                                              << job.output() << job.errors() << hosts);
    }
}

void check_cannon(Hosts& hosts, const std::vector<std::string>& placement, int ranks) {
  for (const bool blocking : {false, true}) {
    std::vector<std::string> words = placement;
    // Threads that poll keep the cores from the other ranks.
    words.insert(words.end(), {"--env", "OMP_WAIT_POLICY=passive", PARC_TEST_BIN "/cannon", "--size", "198",
                               "--threads", "2", "--steps", "3", "--check", "--json"});
    if (blocking) words.push_back("--blocking");
    Process job = hosts.run(words);
    const int status = job.wait();
    int right = 0;
    std::istringstream lines(job.output());
    for (std::string line; std::getline(lines, line);)
      right += nlohmann::json::parse(line).at("correct").get<bool>();
    BOOST_TEST((status == 0 && job.errors() == "" && right == ranks),
               "cannon on " << placement.back() << (blocking ? ", blocking" : ", hidden") << ": status "
                            << status << ": " << job.output() << job.errors() << hosts);
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

// 198 rows are 99 or 66 a block: with rows left over in every unrolled loop, and long messages.
BOOST_AUTO_TEST_CASE(cannon_on_one_host) {
  for (const char* local : {"direct", "signal", "wait", "kernel"}) {
    BOOST_TEST_CONTEXT("local = " << local) {
      Hosts hosts(1, {"--local", local});
      for (const int ranks : {1, 4, 9}) check_cannon(hosts, {"-n", std::to_string(ranks)}, ranks);
    }
  }
}

BOOST_AUTO_TEST_CASE(cannon_between_hosts) {
  Hosts hosts(2);
  check_cannon(hosts, {"--hosts", "a:2,b:2"}, 4);
  check_cannon(hosts, {"--hosts", "a:5,b:4"}, 9);
}

BOOST_AUTO_TEST_CASE(cg) {
  Hosts hosts(2);
  check_program(hosts, "cg", {"--size", "258"});
  check_program(hosts, "cg", {"--size", "258", "--hide"});
}

BOOST_AUTO_TEST_CASE(cg_says_what_it_cannot_do) {
  Hosts hosts(1);
  const std::vector<std::pair<std::vector<std::string>, std::string>> wrong{
      {{"--size", "2"}, "2 rows are too few for 3 ranks"},
      {{"--size", "64", "--check", "--asleep", "1,1,1,1,1,1"}, "--asleep goes neither with --check"}};
  for (const auto& [options, sentence] : wrong) {
    std::vector<std::string> words{"-n", "3", PARC_TEST_BIN "/cg"};
    words.insert(words.end(), options.begin(), options.end());
    Process job = hosts.run(words);
    BOOST_TEST(job.wait() == 2, job);
    BOOST_TEST(job.errors().find("cg: ") != std::string::npos, job.errors());
    BOOST_TEST(job.errors().find(sentence) != std::string::npos, job.errors());
  }
}

BOOST_AUTO_TEST_CASE(cannon_says_what_it_cannot_cut) {
  Hosts hosts(1);
  Process three = hosts.run({"-n", "3", PARC_TEST_BIN "/cannon"});
  BOOST_TEST(three.wait() == 2);
  BOOST_TEST(three.errors().find("cannon: 3 ranks are no square grid") != std::string::npos, three.errors());
  Process odd = hosts.run({"-n", "4", PARC_TEST_BIN "/cannon", "--size", "33"});
  BOOST_TEST(odd.wait() == 2);
  BOOST_TEST(odd.errors().find("33 rows cannot be cut into 2 equal parts") != std::string::npos,
             odd.errors());
}

BOOST_AUTO_TEST_SUITE_END()

} // namespace parc::test
