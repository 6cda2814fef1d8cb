// SPDX-License-Identifier: BSD-3-Clause
// Early release between real kernels, on two hosts and on one. The programs check what they read
// (tests/support/programs); here is checked how they end.
#include "tests/support/hosts.hpp"

#include <algorithm>
#include <boost/test/unit_test.hpp>
#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <random>
#include <sstream>
#include <thread>

namespace parc::test {
namespace {

const std::string programs = PARC_TEST_PROGRAMS "/";
const std::vector<std::string> placements{"a,b", "a:2"};

// A sanitizer's malloc is not glibc's: its memory is bounced.
#ifdef __SANITIZE_ADDRESS__
const std::vector<const char*> adoptable{"bss", "data"}, random_kinds{"arena", "bss"},
    written_kinds{"arena", "bss"};
#else
const std::vector<const char*> adoptable{"heap", "chunk", "bss", "data"},
    random_kinds{"arena", "chunk", "bss"}, written_kinds{"arena", "chunk", "bss"};
#endif

bool contains(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

// Some rank has pages of a segment without access.
bool guards_pages(const Hosts& hosts) {
  return std::ranges::any_of(hosts.ranks(), [](pid_t rank) {
    std::ifstream maps("/proc/" + std::to_string(rank) + "/maps");
    for (std::string line; std::getline(maps, line);)
      if (contains(line, " ---s ") && contains(line, "SYSV")) return true;
    return false;
  });
}

// Lets rank 0 send once rank 1's wait has returned. With libparc-early.so in front of the C library rank 1
// cannot say so: what it says would wait, too.
Process run_case(Hosts& hosts, const std::string& placement, const std::string& how,
                 const std::string& kind = "arena", bool preload = false) {
  static int runs = 0;
  const std::string file = hosts.directory() + "/go" + std::to_string(++runs);
  std::vector<std::string> words{"--hosts", placement, programs + "early", how, file, kind};
  if (preload) words.insert(words.begin(), "--early-release");
  Process job = hosts.run(words);
  BOOST_TEST(eventually([&] {
               return (preload ? guards_pages(hosts) : contains(job.output(), "released")) || !job.running();
             }),
             how);
  // It has come to the page that is not there.
  if (how == "touch") BOOST_TEST(eventually([&] { return hosts.ranks_sleep() || !job.running(); }));
  std::ofstream{file};
  return job;
}

void check_case(Hosts& hosts, const std::string& how, const std::string& kind = "arena",
                bool preload = false) {
  for (const std::string& placement : placements) {
    Process job = run_case(hosts, placement, how, kind, preload);
    const int status = job.wait();
    BOOST_TEST((status == 0 && job.errors() == ""), how << " into " << kind << " on " << placement
                                                        << ": status " << status << ": " << job.errors()
                                                        << hosts);
  }
}

} // namespace

BOOST_AUTO_TEST_SUITE(early)

BOOST_AUTO_TEST_CASE(a_released_read_is_waited_for_by_touch) {
  Hosts hosts(2);
  for (const char* how : {"touch", "store", "shared", "repost", "forward", "short", "fork", "status"})
    check_case(hosts, how);
}

BOOST_AUTO_TEST_CASE(an_order_is_declared) {
  Hosts hosts(2);
  for (const char* how : {"up", "down", "not-up", "not-down"})
    for (const char* kind : {"arena", "bss"}) check_case(hosts, how, kind);
}

BOOST_AUTO_TEST_CASE(a_released_write_sends_what_was_there) {
  Hosts hosts(2);
  int runs = 0;
  for (const char* how : {"store", "store-downwards", "load", "again", "threads", "fork", "handler", "closed",
                          "no-room", "table", "any"})
    for (const char* kind : written_kinds)
      for (const std::string& placement : placements) {
        const std::string file = hosts.directory() + "/stored" + std::to_string(++runs);
        Process job = hosts.run({"--hosts", placement, programs + "early_writes", how, file, kind});
        const int status = job.wait();
        BOOST_TEST((status == 0 && job.errors() == ""), how << " from " << kind << " on " << placement
                                                            << ": status " << status << ": " << job.errors()
                                                            << hosts);
      }
}

BOOST_AUTO_TEST_CASE(the_gate_keeps_the_order_of_writes) {
  Hosts hosts(2);
  for (const std::string& placement : placements) {
    Process job = hosts.run({"--hosts", placement, programs + "early", "order", "none"});
    const int status = job.wait();
    BOOST_TEST((status == 0 && job.errors() == ""), placement << ": " << job.errors() << hosts);
  }
}

BOOST_AUTO_TEST_CASE(any_memory_is_adopted) {
  Hosts hosts(2);
  for (const char* kind : adoptable)
    for (const char* how : {"touch", "store", "shared", "forward", "short", "fork", "own-faults"})
      check_case(hosts, how, kind);
}

// Where a sanitizer stands in front of the C library nothing else can.
bool preload_is_built(boost::unit_test::test_unit_id) {
  return std::filesystem::exists(PARC_TEST_BIN "/../lib/libparc-early.so.0");
}

BOOST_AUTO_TEST_CASE(system_calls_wait_for_guarded_pages, *boost::unit_test::precondition(preload_is_built)) {
  Hosts hosts(2);
  for (const char* kind : {"arena", "chunk"})
    for (const char* how : {"call-write", "call-writev", "call-fwrite", "call-neighbour", "call-read",
                            "call-fread", "blocked", "handler-after", "thread", "program", "touch", "fork"})
      check_case(hosts, how, kind, true);
}

BOOST_AUTO_TEST_CASE(changes_of_pages_wait_for_what_is_missing,
                     *boost::unit_test::precondition(preload_is_built)) {
  Hosts hosts(2);
  int runs = 0;
  unsigned long released = 0; // in all of them: whether a wait comes before its bytes is chance
  for (const char* level : {"full", "envelope"})
    for (const std::string& placement : placements) {
      const std::string file = hosts.directory() + "/told" + std::to_string(++runs);
      Process job = hosts.run(
          {"--hosts", placement, std::string("--early-release=") + level, programs + "page_changes", file});
      const int status = job.wait();
      BOOST_TEST((status == 0 && job.errors() == ""),
                 level << " on " << placement << ": status " << status << ": " << job.errors() << hosts);
      BOOST_TEST(contains(job.output(), "waits released early"));
      released += std::strtoul(job.output().c_str(), nullptr, 10);
    }
  BOOST_TEST(released > 0u);
}

// A kernel of which nothing else is installed starts no program that asks for what it does not have.
BOOST_AUTO_TEST_CASE(without_its_library_nothing_starts, *boost::unit_test::precondition(preload_is_built)) {
  Hosts hosts(1);
  const std::string alone = hosts.directory() + "/alone", runtime_dir = hosts.directory() + "/x";
  std::filesystem::create_directory(alone);
  std::filesystem::copy_file(PARC_TEST_BIN "/parcd", alone + "/parcd");
  Process kernel =
      hosts.start({alone + "/parcd", "--runtime-dir", runtime_dir, "--port", "0", "--name", "x"});
  const auto parc = [&](const std::string& command, std::vector<std::string> words) {
    words.insert(words.begin(), {PARC_TEST_BIN "/parc", command, "--runtime-dir", runtime_dir});
    return hosts.start(std::move(words));
  };
  BOOST_TEST(eventually([&] { return parc("status", {}).wait() == 0; }));
  Process job = parc("run", {"--early-release", "true"});
  BOOST_TEST(job.wait() == 125);
  BOOST_TEST(contains(job.errors(), "cannot start true on host x: libparc-early.so"), job.errors());
  BOOST_TEST(parc("run", {"--early-release=off", "true"}).wait() == 0);
  kernel.signal(SIGTERM);
  BOOST_TEST(kernel.wait() == 0);
}

BOOST_AUTO_TEST_CASE(a_library_that_is_loaded_for_itself_is_found,
                     *boost::unit_test::precondition(preload_is_built)) {
  Hosts hosts(2);
  const std::string file = hosts.directory() + "/go";
  Process job = hosts.run(
      {"--hosts", "a,b", "--early-release", programs + "loaded", PARC_TEST_BIN "/../lib/libparc.so.0", file});
  BOOST_TEST(eventually([&] { return guards_pages(hosts) || !job.running(); }));
  std::ofstream{file};
  BOOST_TEST(job.wait() == 0, job);
}

BOOST_AUTO_TEST_CASE(a_file_is_written_after_what_its_program_was_released_from,
                     *boost::unit_test::precondition(preload_is_built)) {
  Hosts hosts(2);
  const std::string file = hosts.directory() + "/go";
  Process job =
      hosts.run({"--hosts", "a,b", "--early-release", programs + "early", "by-file", file, "arena"});
  BOOST_TEST(eventually([&] { return guards_pages(hosts); }));
  // It is in fopen by now, or about to be.
  for (int i = 0; i < 100; ++i) {
    BOOST_TEST(!std::filesystem::exists(file + ".said"));
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  std::ofstream{file};
  BOOST_TEST(job.wait() == 0, job);
  BOOST_TEST(std::filesystem::file_size(file + ".said") == 4u);
}

BOOST_AUTO_TEST_CASE(adopted_memory_that_goes_is_not_trusted) {
  Hosts hosts(2);
  for (const std::string& placement : placements) {
    Process job = hosts.run({"--hosts", placement, programs + "adopted"});
    const int status = job.wait();
    BOOST_TEST((status == 0 && job.errors() == ""),
               placement << ": status " << status << ": " << job.errors() << hosts);
  }
}

BOOST_AUTO_TEST_CASE(faults_of_the_program_are_its_own) {
  Hosts hosts(2);
  check_case(hosts, "own-faults");
  Process job = run_case(hosts, "a,b", "wild");
#ifdef __SANITIZE_ADDRESS__
  BOOST_TEST(job.wait() != 0); // its handler reports, and exits
#else
  BOOST_TEST(job.wait() == 128 + SIGSEGV);
#endif
  BOOST_TEST(contains(job.output(), "wild"));
}

BOOST_AUTO_TEST_CASE(a_message_that_never_comes_ends_the_program) {
  Hosts hosts(2);
  for (const std::string& placement : placements) {
    Process job = run_case(hosts, placement, "lost");
    BOOST_TEST(job.wait() == 128 + SIGABRT, placement);
    BOOST_TEST(contains(job.errors(), "parc: rank 1: lost a message from rank 0 (tag 0)"), job.errors());
    Process handled = run_case(hosts, placement, "handled");
    BOOST_TEST(handled.wait() == 0, placement << ": " << handled);
    BOOST_TEST(contains(handled.output(), "went on"));
  }
  check_case(hosts, "truncated-handled");
  Process truncated = run_case(hosts, "a,b", "truncated");
  BOOST_TEST(truncated.wait() == 128 + SIGABRT);
  BOOST_TEST(contains(truncated.errors(), "the message was longer than the read"), truncated.errors());
}

BOOST_AUTO_TEST_CASE(a_kernel_that_dies_ends_the_program) {
  Hosts hosts(2);
  const std::string file = hosts.directory() + "/never";
  Process job = hosts.run({"--hosts", "a,b", programs + "early", "touch", file});
  BOOST_TEST(eventually([&] { return contains(job.output(), "released"); }));
  hosts[1].kernel().signal(SIGKILL);
  BOOST_TEST(job.wait() != 0);
  BOOST_TEST(eventually([&] { return hosts.ranks().empty(); }));
}

BOOST_AUTO_TEST_CASE(causality) {
  Hosts hosts(3);
  for (const char* placement : {"a,b,c", "a:3"}) {
    Process loop = hosts.run({"--hosts", placement, programs + "causality", "no-gate"});
    BOOST_TEST(loop.wait() == 0, loop);
    BOOST_TEST(loop.output() == "from 1\n", placement); // what must not be
    Process gated = hosts.run({"--hosts", placement, programs + "causality", "gate"});
    BOOST_TEST(gated.wait() == 0, gated);
    BOOST_TEST(gated.output() == "from 2\n", placement);
  }
}

// Of one host: at level envelope no gate need be in their kernel.
BOOST_AUTO_TEST_CASE(neighbours_exchange_messages_without_their_kernel) {
  Hosts hosts(1);
  for (const char* level : {"off", "envelope"}) { // that it begins with
    const std::uint64_t before = hosts.status()["counters"]["messages_local"];
    Process job = hosts.run(
        {std::string("--early-release=") + level, "--hosts", "a:2", programs + "early_in_vain", "2000"});
    BOOST_TEST(job.wait() == 0, job);
    BOOST_TEST(eventually([&] { return hosts.status()["counters"]["sessions"] == 0; }));
    const std::uint64_t after = hosts.status()["counters"]["messages_local"];
    BOOST_TEST(after - before < 100, level);
  }
}

// What is long is the kernel's business, and may be released: a kernel that competes with the ranks for the
// cores leaves it half arrived.
BOOST_AUTO_TEST_CASE(a_long_message_of_a_neighbour_is_released) {
  Hosts hosts(1, {"--realtime", "off", "--spin-us", "0"});
  Process job = hosts.run({"--hosts", "a:2", programs + "early_long", "20"});
  BOOST_TEST(job.wait() == 0, job);
  std::istringstream counts(job.output());
  unsigned of_any = 0, of_one = 0;
  counts >> of_any >> of_one;
  BOOST_TEST(of_any > 0U);
  BOOST_TEST(of_one > 0U);
}

BOOST_AUTO_TEST_CASE(random_buffers_and_touches) {
  Hosts hosts(2);
  unsigned long long released = 0;
  for (const char* placement : {"a,b", "a:2", "a:2,b:2"})
    for (const char* kind : random_kinds) {
      const std::string seed = std::to_string(std::random_device()());
      Process job = hosts.run({"--hosts", placement, programs + "early_random", seed, "60", kind});
      const int status = job.wait();
      BOOST_TEST((status == 0 && job.errors() == ""), kind << ", seed " << seed << " on " << placement
                                                           << ": status " << status << ": " << job.errors()
                                                           << hosts);
      std::istringstream counts(job.output());
      for (unsigned long long each = 0; counts >> each;) released += each;
    }
  BOOST_TEST(released > 100U);
}

BOOST_AUTO_TEST_SUITE_END()

} // namespace parc::test
