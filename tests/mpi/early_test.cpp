// SPDX-License-Identifier: BSD-3-Clause
// Early release under MPI: receives and gets return when their bytes have begun to arrive, and nothing else
// changes.
#include "tests/mpi/mpi_job.hpp"
#include "tests/support/path.hpp"

#include <boost/test/data/test_case.hpp>
#include <boost/test/unit_test.hpp>
#include <csignal>
#include <fstream>
#include <map>
#include <memory>

namespace parc::test {
namespace {

const std::vector<std::string> released{"LD_PRELOAD=" PARC_EARLY_LIBRARY, "PARC_EARLY_RELEASE=envelope"};

// A job whose rank 0 receives or gets from rank 1 over a path that stops in the middle of the message.
struct Stopped {
  std::map<std::uint16_t, std::unique_ptr<Path>> paths;
  Hosts hosts;
  Process run;

  explicit Stopped(const std::vector<std::string>& words, const std::vector<std::string>& options = {},
                   const std::vector<std::string>& environment = released)
      : hosts(2, options, {},
              [this](std::uint16_t port) {
                return paths.emplace(port, std::make_unique<Path>(port)).first->second->port();
              }),
        run(start(words, environment)) {}
  Process start(const std::vector<std::string>& words, const std::vector<std::string>& environment) {
    for (const auto& [port, path] : paths) path->hold_after(2 << 20);
    std::vector<std::string> line{"env", "-C", hosts.directory()};
    append(line, mpirun(hosts, by_parc, {"early", 2, 2, words, environment}));
    return hosts.start(line);
  }
  void go_on() {
    for (const auto& [port, path] : paths) path->go_on();
  }
  [[nodiscard]] bool says(const std::string& what) const {
    return run.output().find(what) != std::string::npos;
  }
  [[nodiscard]] bool has_returned() const {
    return eventually([&] { return says("returned with 33554432 bytes of rank 1"); });
  }
  [[nodiscard]] std::string all() const { return run.output() + run.errors() + hosts.logs(); }
};

void compare_released(Job job) {
  Hosts hosts(job.hosts);
  const std::string expected = expected_of(hosts, job);
  job.environment = released;
  BOOST_TEST(output_of(hosts, by_parc, job) == expected);
}

} // namespace

BOOST_AUTO_TEST_SUITE(early_release)

using Words = std::vector<std::string>;
const Words ways[]{{"recv"}, {"sendrecv"}, {"wait"}, {"waitall"}, {"recv", "file"}, {"recv", "echo"}};

BOOST_DATA_TEST_CASE(returns_before_its_message_is_here, boost::unit_test::data::xrange(std::size(ways)),
                     way) {
  Stopped job(ways[way]);
  BOOST_REQUIRE(job.has_returned());
  BOOST_TEST(!job.says("all of it"));
  job.go_on();
  BOOST_TEST(job.run.wait() == 0, job.all());
  BOOST_TEST(job.says("all of it is right"));
}

const Words calls{"get", "flush", "rget"};

BOOST_DATA_TEST_CASE(a_get_returns_before_all_of_it_is_here, calls* Words({"gets", "envelope"}), call,
                     level) {
  // As of ranks that are alone on their hosts.
  Stopped job(
      {call}, {},
      {"LD_PRELOAD=" PARC_EARLY_LIBRARY, "PARC_EARLY_RELEASE=" + level, "OMPI_COMM_WORLD_LOCAL_SIZE=1"});
  const auto has_returned = [sign = job.hosts.directory() + "/early.sign"] {
    return std::ifstream(sign).get() == '!';
  };
  BOOST_REQUIRE(eventually(has_returned));
  BOOST_TEST(!job.says("all of it"));
  job.go_on();
  BOOST_TEST(job.run.wait() == 0, job.all());
  BOOST_TEST(job.says("all of it is right"));
}

// Whoever has gone on as if the message were there cannot be given an error.
BOOST_AUTO_TEST_CASE(a_message_that_is_lost_after_its_receive) {
  Stopped job({"recv"}, {"--link-timeout-s", "2"});
  BOOST_REQUIRE(job.has_returned());
  job.hosts[1].kernel().signal(SIGKILL);
  job.go_on();
  BOOST_TEST(job.run.wait() != 0);
  BOOST_TEST(!job.says("all of it"));
  BOOST_TEST(job.run.errors().find("parc: ") != std::string::npos, job.all());
}

BOOST_AUTO_TEST_CASE(the_same_results) {
  for (const Job& job : std::vector<Job>{{"point_to_point", 5, 2},
                                         {"matching", 2, 2},
                                         {"collectives", 8, 3},
                                         {"communicators", 8, 3},
                                         {"datatypes", 4, 2},
                                         {"windows", 5, 3},
                                         {"files", 4, 2},
                                         {"threads", 3, 3},
                                         {"fortran_mpi_f08", 3, 2},
                                         {"objects.py", 4, 3},
                                         {"heat", 5, 3, {"blocking", "3000", "9", "1", "10"}},
                                         {"heat_fortran", 5, 3, {"blocking", "3000", "9", "1", "10"}},
                                         {"poisson", 3, 2, {"1030", "100", "1", "7"}},
                                         {"nbody", 4, 2, {"1001", "7"}},
                                         {"m3", 3, 2, {"130", "7"}}})
    compare_released(job);
}

// Its files and sockets would not know of pages that are missing.
BOOST_AUTO_TEST_CASE(refused_without_the_wrappers) {
  Hosts hosts(1);
  Process run =
      hosts.start(mpirun(hosts, by_parc, {"point_to_point", 2, 1, {}, {"PARC_EARLY_RELEASE=envelope"}}));
  BOOST_TEST(run.wait() == 0);
  BOOST_TEST(run.errors().find("parc: early release is off: libparc-early.so is not loaded") !=
                 std::string::npos,
             run.errors());
}

BOOST_AUTO_TEST_SUITE_END()

} // namespace parc::test
