// SPDX-License-Identifier: BSD-3-Clause
// MPI programs over parc, on several emulated hosts, print what they print over Open MPI's own TCP. They
// check what they receive themselves (programs/). More of them are started by parc run (launcher_test.cpp).
#include "tests/mpi/mpi_job.hpp"

#include <algorithm>
#include <boost/test/unit_test.hpp>
#include <csignal>

namespace parc::test {

BOOST_AUTO_TEST_SUITE(mpi)

BOOST_AUTO_TEST_CASE(point_to_point) {
  compare({"point_to_point", 2});
}

BOOST_AUTO_TEST_CASE(matching) {
  compare({"matching", 2, 2});
  compare({"matching", 5, 1});
}

// The last of more messages than a kernel's table has places is received first.
BOOST_AUTO_TEST_CASE(thousands_backwards) {
  compare({"matching", 2, 2, {"backwards"}});
  compare({"matching", 2, 1, {"backwards"}});
}

// What MPI itself sends passes them.
BOOST_AUTO_TEST_CASE(thousands_posted_before_a_barrier) {
  compare({"matching", 2, 1, {"preposted"}});
  compare({"matching", 3, 1, {"preposted"}});
}

// Open MPI's own TCP crashes here: the program's own checks have to do.
BOOST_AUTO_TEST_CASE(long_messages_cut_off) {
  Hosts hosts(2);
  output_of(hosts, by_parc, {"matching", 3, 2, {"long"}});
}

BOOST_AUTO_TEST_CASE(collectives) {
  compare({"collectives", 2, 2});
  compare({"collectives", 7, 1});
}

BOOST_AUTO_TEST_CASE(communicators) {
  compare({"communicators", 3, 1});
  compare({"communicators", 8, 3});
}

BOOST_AUTO_TEST_CASE(datatypes) {
  compare({"datatypes", 2, 1});
  compare({"datatypes", 4, 2});
}

BOOST_AUTO_TEST_CASE(windows) {
  compare({"windows", 2, 1});
  compare({"windows", 5, 3});
  Hosts hosts(2);
  std::vector<std::string> by_messages = by_parc;
  std::ranges::replace(by_messages, "sm,rdma", "sm,pt2pt");
  BOOST_TEST(output_of(hosts, by_messages, {"windows", 3, 2}) == expected_of(hosts, {"windows", 3, 2}));
}

// Open MPI's other ways to windows cannot do that with threads, or never end it.
BOOST_AUTO_TEST_CASE(windows_of_any_memory_and_number) {
  for (const auto& [ranks, on_hosts] : {std::pair{2u, 1u}, {8u, 1u}, {2u, 2u}, {5u, 2u}}) {
    Hosts hosts(on_hosts);
    output_of(hosts, by_parc, {"registered", ranks, on_hosts});
  }
}

BOOST_AUTO_TEST_CASE(threads) {
  compare({"threads", 2, 1});
}

// The children run on the same host, and on another.
// Of the 2008 paper: a signal of the sender's has the receiver match while it computes. And without.
BOOST_AUTO_TEST_CASE(neighbours_that_interrupt_and_that_wait) {
  for (const char* const local : {"signal", "wait"}) {
    Hosts hosts(1, {"--local", local});
    for (const Job& job : {Job{"point_to_point", 3}, Job{"collectives", 3}, Job{"threads", 2}})
      BOOST_TEST(output_of(hosts, by_parc, job) == expected_of(hosts, job), local << ": " << job.program);
  }
}

BOOST_AUTO_TEST_CASE(spawning) {
  compare({"spawning", 3, 2});
  Hosts hosts(2);
  const Job job{"spawning", 2, 1, {"env", "PARC_RUNTIME_DIR=" + hosts[1].runtime_dir()}};
  BOOST_TEST(output_of(hosts, by_parc, job) == output_of(hosts, by_tcp, job));
}

BOOST_AUTO_TEST_CASE(files) {
  compare({"files", 4, 2});
}

BOOST_AUTO_TEST_CASE(fortran) {
  for (const char* program : {"fortran_mpif", "fortran_mpi"}) compare({program, 3, 2});
}

// Over parc, an image is also read while it computes, for as long as that takes.
BOOST_AUTO_TEST_CASE(coarrays) {
  compare({"coarrays", 4, 1});
  compare({"coarrays", 3, 2});
  Hosts hosts(2);
  for (const std::size_t on_hosts : {1u, 2u})
    output_of(hosts, by_parc, {"coarrays", 3, on_hosts, {"computing"}});
}

BOOST_AUTO_TEST_CASE(python) {
  compare({"objects.py", 2, 1});
  compare({"objects.py", 3, 2, {"window"}});
}

// The plain MPI programs of examples/mpi.
BOOST_AUTO_TEST_CASE(examples) {
  for (const auto& [ranks, number_of_hosts] : {std::pair{2u, 1u}, {3u, 2u}, {8u, 3u}}) {
    compare({"poisson", ranks, number_of_hosts, {"1030", "100", "1", "7"}});
    compare({"nbody", ranks, number_of_hosts, {"1001", "7"}});
    compare({"m3", ranks, number_of_hosts, {"130", "7"}});
    compare({"cg", ranks, number_of_hosts, {"hidden", "65", "20"}});
    compare({"cg", ranks, number_of_hosts, {"blocking", "65", "20"}});
  }
}

// One plate, whatever the language, the calls and the network are.
BOOST_AUTO_TEST_CASE(heat) {
  for (const auto& [ranks, number_of_hosts] : {std::pair{2u, 2u}, {5u, 3u}}) {
    Hosts hosts(number_of_hosts);
    std::string first;
    for (const char* const program : {"heat", "heat_fortran"})
      for (const char* const calls : {"hidden", "blocking"})
        for (const auto* const network : {&by_parc, &by_tcp}) {
          const Job job{program, ranks, number_of_hosts, {calls, "3000", "9", "1", "10"}};
          const std::string said = output_of(hosts, *network, job);
          if (first.empty()) first = said;
          BOOST_TEST(said == first, program << " " << calls << ": " << said << " and not " << first);
        }
    BOOST_TEST(first.find("result") != std::string::npos);
  }
}

// MPI_Abort ends the job with its number, whatever the others are doing.
BOOST_AUTO_TEST_CASE(aborting) {
  Hosts hosts(2);
  const Job job{"aborting", 4, 2};
  Process run = hosts.start(mpirun(hosts, by_parc, job));
  const int status = run.wait();
  BOOST_TEST(status == 17, run.output() << run.errors() << hosts);
}

BOOST_AUTO_TEST_CASE(an_exit_in_a_signal_handler) {
  for (const std::size_t hosts_of_it : {1u, 2u})
    for (const std::vector<std::string>& words : {std::vector<std::string>{}, {"waiting"}}) {
      Hosts hosts(hosts_of_it);
      Process run = hosts.start(mpirun(hosts, by_parc, {"exiting", 2, hosts_of_it, words}));
      const int status = run.wait();
      BOOST_TEST((status == 7 || status == 17), // rank 1 may be the first to be heard: MPI_ERR_INTERN
                 status << ": " << run.output() << run.errors() << hosts);
    }
}

// Open MPI hands no address on, and takes no notice of what the start of an operation returns.
BOOST_AUTO_TEST_CASE(a_buffer_that_is_no_memory) {
  Hosts hosts(1);
  Process run = hosts.start(mpirun(hosts, by_parc, {"bottom", 2, 1}));
  BOOST_TEST(run.wait() != 0, run.output());
  BOOST_TEST(run.output().find("right") == std::string::npos);
  BOOST_TEST(run.errors().find("a buffer of 12 bytes is a null pointer") != std::string::npos, run.errors());
}

#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__) // which take address space themselves
BOOST_AUTO_TEST_CASE(little_memory) {
  for (const std::size_t hosts_of_it : {1u, 2u}) {
    Hosts hosts(hosts_of_it);
    BOOST_TEST(output_of(hosts, by_parc, {"little_memory", 2, hosts_of_it, {"24"}}).find("right") !=
               std::string::npos);
    Process run = hosts.start(mpirun(hosts, by_parc, {"little_memory", 2, hosts_of_it, {"1"}}));
    BOOST_TEST(run.wait() > 0, run.output());
    BOOST_TEST(run.errors().find("Cannot allocate memory") != std::string::npos, run.errors());
  }
}
#endif

// What waits in MPI gets an error, and the job's end says why.
BOOST_AUTO_TEST_CASE(a_kernel_is_killed) {
  for (const std::size_t hosts_of_it : {1u, 2u}) {
    Hosts hosts(hosts_of_it);
    Process run = hosts.start(mpirun(hosts, by_parc, {"losing", 2, hosts_of_it}));
    BOOST_REQUIRE(eventually([&] { return run.output().find("waiting") != std::string::npos; }));
    hosts[hosts_of_it - 1].kernel().signal(SIGKILL);
    BOOST_TEST(run.wait() == 18, run);
    BOOST_TEST(run.errors().find(": an operation failed: the ") != std::string::npos, run.errors());
    BOOST_TEST(run.errors().find(" of another job ") != std::string::npos, run.errors()); // which it was
  }
}

BOOST_AUTO_TEST_SUITE_END()

} // namespace parc::test
