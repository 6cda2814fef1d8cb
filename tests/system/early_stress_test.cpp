// SPDX-License-Identifier: BSD-3-Clause
// Early release under stress (tests/support/programs/early_stress.cpp), between real kernels: the same random
// messages every time, and some that nobody has seen. Whoever reads a wrong byte says which, and the seed.
#include "tests/support/hosts.hpp"

#include <boost/test/unit_test.hpp>
#include <chrono>
#include <iostream>
#include <random>

namespace parc::test {
namespace {

// 100,000 in all. A sanitizer makes each dear, and has a malloc whose memory is bounced.
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
constexpr int messages = 600, rounds = 3;
#else
constexpr int messages = 10'000, rounds = 40;
#endif

// Kernels that compete with the ranks for the cores leave messages half arrived, and one that takes many
// steps is seldom whole when it has begun. (Small socket buffers would serve as well, but below the
// loopback's segments TCP only probes now and then.)
const std::vector<std::string> unhurried{"--realtime", "off"},
    small_steps{"--realtime", "off", "--fragment-size", "1024", "--spin-us", "0"};

// With an odd seed each thread has a heap of its own (see the program).
struct Run {
  std::uint64_t seed;
  int threads;
  const char* placement;
};

std::vector<Run> runs() {
  const std::uint64_t random = std::random_device()();
  std::cout << "early_stress with random seed " << random << " too" << std::endl;
  return {{1, 1, "a:2,b"}, {2, 4, "a:2,b"}, {3, 4, "a:3"}, {4, 4, "a:2,b:2"}, {random, 4, "a:2,b"}};
}

} // namespace

BOOST_AUTO_TEST_SUITE(early_stress)

BOOST_AUTO_TEST_CASE(random_messages_into_any_memory) {
  Hosts hosts(2, unhurried), slower(2, small_steps);
  for (const Run& run : runs())
    for (Hosts* each : {&hosts, &slower}) {
      Process job = each->run({"--hosts", run.placement, PARC_TEST_PROGRAMS "/early_stress", "--seed",
                               std::to_string(run.seed), "--messages", std::to_string(messages), "--threads",
                               std::to_string(run.threads)});
      const int status = job.wait();
      BOOST_TEST((status == 0 && job.errors() == ""),
                 "seed " << run.seed << " with " << run.threads << " threads on " << run.placement
                         << (each == &slower ? " in small steps" : "") << ": status " << status << ": "
                         << job.errors() << each->logs());
    }
}

// How long at each level: `early_stress_tests --run_test=early_stress/buffers_that_come_and_go -- 600`.
std::chrono::seconds patience() {
  const auto& suite = boost::unit_test::framework::master_test_suite();
  return std::chrono::seconds(suite.argc > 1 ? std::stoi(suite.argv[1]) : 0);
}

BOOST_AUTO_TEST_CASE(buffers_that_come_and_go) {
  Hosts hosts(2, unhurried);
  std::random_device random;
  for (const char* level : {"full", "envelope", "off"}) {
    const auto end = std::chrono::steady_clock::now() + patience();
    do
      for (const char* placement : {"a,b", "a:2,b", "a:2,b:2", "a:3,b:2"}) {
        const std::string seed = std::to_string(random());
        Process job = hosts.run(
            {"--hosts", placement, PARC_TEST_PROGRAMS "/early_churn", seed, std::to_string(rounds), level});
        const int status = job.wait();
        BOOST_TEST((status == 0 && job.errors() == ""), level << ", seed " << seed << " on " << placement
                                                              << ": status " << status << ": " << job.errors()
                                                              << hosts.logs());
      }
    while (std::chrono::steady_clock::now() < end);
  }
}

BOOST_AUTO_TEST_SUITE_END()

} // namespace parc::test
