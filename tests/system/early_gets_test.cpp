// SPDX-License-Identifier: BSD-3-Clause
// Gets that are released early, between real kernels. The program checks what it got
// (tests/support/programs/early_gets.cpp); here is checked how it ends.
#include "tests/support/hosts.hpp"

#include <boost/test/data/test_case.hpp>
#include <boost/test/unit_test.hpp>
#include <csignal>
#include <fstream>
#include <random>

namespace parc::test {
namespace {

const std::string program = PARC_TEST_PROGRAMS "/early_gets";

bool said(const Process& job, const char* word) {
  return job.output().find(word) != std::string::npos;
}

// While the kernel that answers is stopped nothing comes.
void run_held(Hosts& hosts, Process& job, const std::string& file) {
  BOOST_TEST(eventually([&] { return said(job, "ready") || !job.running(); }), job);
  hosts[1].kernel().signal(SIGSTOP);
  std::ofstream{file};
  BOOST_TEST(eventually([&] { return said(job, "released") || !job.running(); }), job);
  hosts[1].kernel().signal(SIGCONT);
}

void check_held(Hosts& hosts, const std::string& how, const std::string& kind) {
  const std::string file = hosts.directory() + "/" + how + "-" + kind;
  Process job = hosts.run({"--hosts", "a,b", program, how, file, kind});
  run_held(hosts, job, file);
  const int status = job.wait();
  BOOST_TEST((status == 0 && job.errors() == ""),
             how << " into " << kind << ": status " << status << ": " << job << hosts);
}

} // namespace

BOOST_AUTO_TEST_SUITE(early_gets)

BOOST_AUTO_TEST_CASE(a_released_get_is_waited_for_by_touch) {
  Hosts hosts(2);
  for (const char* how :
       {"touched", "told", "put", "answered", "status", "thread", "up", "down", "not-up", "short", "again"})
    for (const char* kind : {"arena", "heap", "bss"}) {
#ifdef __SANITIZE_ADDRESS__
      if (std::string(kind) == "heap") continue; // a sanitizer's is not adopted
#endif
      if ((std::string(how) == "short" || std::string(how) == "thread") && std::string(kind) != "arena")
        continue; // these wait
      check_held(hosts, how, kind);
    }
}

// What programs synchronize by (HUNT 2005, section 5.4), besides those above: each is right without training.
BOOST_AUTO_TEST_CASE(points_of_synchronization_retire_what_was_got) {
  Hosts hosts(2);
  for (const char* how : {"unlocked", "barrier", "strictly"}) check_held(hosts, how, "arena");
}

BOOST_AUTO_TEST_CASE(strips_and_trains) {
  Hosts hosts(2);
  for (const char* how : {"strips", "strips-of-a-byte", "one-strip", "train", "train-down", "not-a-train",
                          "train-first", "train-backwards"})
    check_held(hosts, how, "arena");
}

BOOST_AUTO_TEST_CASE(what_is_never_got_is_told) {
  Hosts hosts(2);
  Process job = hosts.run({"--hosts", "a,b", program, "lost", hosts.directory() + "/lost"});
  run_held(hosts, job, hosts.directory() + "/lost");
  BOOST_TEST(job.wait() == 128 + SIGABRT);
  BOOST_TEST(said(job, "released"));
  BOOST_TEST(job.errors().find("lost what it got from window 8 of rank 1") != std::string::npos, job);
  Process handled = hosts.run({"--hosts", "a,b", program, "handled", hosts.directory() + "/handled"});
  run_held(hosts, handled, hosts.directory() + "/handled");
  BOOST_TEST(handled.wait() == 0, handled);
  BOOST_TEST(said(handled, "went on"), handled);
}

BOOST_AUTO_TEST_CASE(random_gets_and_touches) {
  Hosts hosts(2);
  unsigned long released = 0; // of all of them: whether a wait comes before its bytes is chance
  for (const std::string placement : {"a,b", "a:2", "a:2,b:2"})
    for (const char* kind : {"arena", "heap", "bss"}) {
      const unsigned number = std::random_device()(); // where it is odd, at the level of gets alone
      const std::string seed = std::to_string(number);
      Process job = hosts.run({"--hosts", placement, program, "random", seed, "30", kind});
      const int status = job.wait();
      BOOST_TEST((status == 0 && job.errors() == ""), kind << ", seed " << seed << " on " << placement
                                                           << ": status " << status << ": " << job << hosts);
      const unsigned long here = std::strtoul(job.output().c_str(), nullptr, 10);
      if (placement == "a:2" && number % 2 != 0) BOOST_TEST(here == 0u);
      released += here;
    }
  BOOST_TEST(released > 0u);
}

BOOST_AUTO_TEST_SUITE_END()

} // namespace parc::test
