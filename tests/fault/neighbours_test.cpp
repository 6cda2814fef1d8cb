// SPDX-License-Identifier: BSD-3-Clause
// kill -9 and SIGSTOP of programs at any moment of their messages to a neighbour of another job: that one
// goes on with the others, and all that it reads is whole.
#include "tests/support/hosts.hpp"

#include <boost/test/data/monomorphic.hpp>
#include <boost/test/data/test_case.hpp>
#include <boost/test/unit_test.hpp>
#include <csignal>
#include <filesystem>
#include <random>
#include <sstream>
#include <thread>

namespace parc::test {
namespace {

const std::string echo = PARC_TEST_PROGRAMS "/echo";

std::vector<pid_t> ranks_of(const Process& job) {
  std::istringstream text(job.output());
  std::vector<pid_t> ranks;
  for (pid_t process = 0; text >> process;) ranks.push_back(process);
  return ranks;
}

} // namespace

BOOST_AUTO_TEST_SUITE(neighbours)

BOOST_DATA_TEST_CASE(one_that_is_killed_at_any_moment_harms_nobody,
                     boost::unit_test::data::make(neighbours_ways), way) {
  constexpr int rounds = 40;
  Hosts hosts(1, options_of(way));
  const std::string file = hosts.directory() + "/address";
  Process server = hosts.run({"-n", "1", echo, "serve", file});
  BOOST_REQUIRE(eventually([&] { return std::filesystem::exists(file); }));
  std::mt19937 random(20261123);
  for (int round = 0; round < rounds; ++round) {
    Process asker = hosts.run({"-n", "2", echo, "ask", file, "0", std::to_string(round)});
    BOOST_REQUIRE(eventually([&] { return ranks_of(asker).size() == 2 || !asker.running(); }));
    BOOST_REQUIRE_MESSAGE(asker.running(), asker.errors() << server.errors() << hosts);
    const pid_t victim = ranks_of(asker)[random() % 2];
    std::this_thread::sleep_for(std::chrono::microseconds(random() % 20000)); // the moment, not a condition
    if (round % 3 == 0) {
      kill(victim, SIGSTOP);
      std::this_thread::sleep_for(std::chrono::microseconds(random() % 20000));
    }
    kill(victim, SIGKILL);
    BOOST_TEST(asker.wait() != 0);
    BOOST_REQUIRE_MESSAGE(server.running(), "round " << round << ": " << server.errors() << hosts);
  }
  Process asker = hosts.run({"-n", "2", echo, "ask", file, "400", "99"});
  BOOST_TEST(asker.wait() == 0, asker << server << hosts);
  Process stop = hosts.run({"-n", "1", echo, "stop", file});
  BOOST_TEST(stop.wait() == 0, stop);
  BOOST_TEST(server.wait() == 0, server << hosts);
  BOOST_TEST(eventually([&] { return hosts.status()["sessions"].empty(); }));
}

BOOST_AUTO_TEST_SUITE_END()

} // namespace parc::test
