// SPDX-License-Identifier: BSD-3-Clause
// Early release under stress (early_stress, early_churn and early_calls of tests/support/programs), between
// real kernels: the same random messages every time, and some that nobody has seen. Whoever reads a wrong
// byte says which, and the seed. For long: see patience().
#include "tests/support/hosts.hpp"
#include "tests/support/path.hpp"

#include <algorithm>
#include <array>
#include <atomic>
#include <boost/test/unit_test.hpp>
#include <chrono>
#include <filesystem>
#include <iostream>
#include <list>
#include <random>
#include <sstream>
#include <thread>

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

// Where a sanitizer stands in front of the C library nothing else can.
bool preload_is_built(boost::unit_test::test_unit_id) {
  return std::filesystem::exists(PARC_TEST_BIN "/../lib/libparc-early.so.0");
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
                         << (each == &slower ? " in small steps" : "") << ": status " << status << ": " << job
                         << *each);
    }
}

// The same, and others', with pages that a trace keeps closed until they are touched.
BOOST_AUTO_TEST_CASE(random_messages_into_closed_pages, *boost::unit_test::precondition(preload_is_built)) {
  Hosts hosts(2, unhurried);
  const std::string directory = hosts.directory();
  const std::string seed = std::to_string(std::random_device()()), few = std::to_string(messages / 5);
  const std::vector<std::vector<std::string>> programs{
      {"early_stress", "--seed", "1", "--messages", few, "--threads", "1"},
      {"early_stress", "--seed", seed, "--messages", few, "--threads", "4"},
      {"early_churn", seed, std::to_string(rounds), "full"},
      {"page_changes", directory + "/told"}};
  for (const auto& program : programs) {
    std::vector<std::string> words{
        "--trace", directory + "/trace.json",          "--trace-pages", "--early-release=full", "--hosts",
        "a,b",     PARC_TEST_PROGRAMS "/" + program[0]};
    words.insert(words.end(), program.begin() + 1, program.end());
    Process job = hosts.run(words);
    const int status = job.wait();
    BOOST_TEST((status == 0 && job.errors() == ""),
               program[0] << ", seed " << seed << ": status " << status << ": " << job << hosts);
  }
}

// How long at each level: `early_stress_tests --run_test=early_stress/buffers_that_come_and_go -- 600`, and
// calls_on_buffers_in_flight as well.
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
                                                              << hosts);
      }
    while (std::chrono::steady_clock::now() < end);
  }
}

// Two hosts on a path that stops for a moment again and again, in the middle of messages.
class HaltingHosts {
public:
  explicit HaltingHosts(const std::vector<std::string>& options)
      : hosts_(2, options, {}, [this](std::uint16_t port) { return paths_.emplace_back(port).port(); }),
        halting_([this] { halt(); }) {}
  HaltingHosts(const HaltingHosts&) = delete;
  HaltingHosts& operator=(const HaltingHosts&) = delete;
  ~HaltingHosts() {
    over_ = true;
    halting_.join();
  }
  Hosts& operator*() { return hosts_; }

private:
  void halt() {
    std::mt19937_64 random;
    while (!over_)
      for (Path& each : paths_) {
        each.hold_after(random() % 200'000);
        std::this_thread::sleep_for(std::chrono::milliseconds(1));
        each.go_on();
      }
  }

  std::list<Path> paths_;
  Hosts hosts_;
  std::atomic<bool> over_ = false;
  std::thread halting_;
};

// What calls of the system and of malloc see of buffers that messages are coming into, with several threads
// or with one.
struct Plan {
  std::uint64_t seed;
  const char* placement;
  int threads, steps;
};

std::ostream& operator<<(std::ostream& to, const Plan& plan) {
  return to << ", seed " << plan.seed << ", " << plan.steps << " steps, " << plan.threads << " threads on "
            << plan.placement;
}

struct Seen {
  std::vector<std::string> by_ranks; // a digest each
  std::uint64_t released = 0;
};

Seen play(Hosts& hosts, const Plan& plan, const std::string& level) {
  static const std::string program = PARC_TEST_PROGRAMS "/early_calls";
  static int runs = 0;
  std::vector<std::string> words{"--timeout",
                                 "40", // less than a test has patience for
                                 "--hosts",
                                 plan.placement,
                                 program,
                                 std::to_string(plan.seed),
                                 std::to_string(plan.steps),
                                 hosts.directory() + "/said" + std::to_string(++runs),
                                 std::to_string(plan.threads)};
  if (level != "off") words.insert(words.begin(), "--early-release=" + level);
  Process job = hosts.run(words);
  const int status = job.wait();
  BOOST_TEST((status == 0 && job.errors() == ""),
             level << plan << ": status " << status << ": " << job.errors() << hosts);
  Seen seen;
  std::istringstream lines(job.output());
  for (std::string line; std::getline(lines, line);)
    if (line.starts_with("released "))
      seen.released += std::stoull(line.substr(9));
    else
      seen.by_ranks.push_back(line);
  std::ranges::sort(seen.by_ranks);
  return seen;
}

BOOST_AUTO_TEST_CASE(calls_on_buffers_in_flight, *boost::unit_test::precondition(preload_is_built)) {
  Hosts hosts(2, small_steps);
  HaltingHosts halting(unhurried);
  const std::array<std::string, 2> levels{"full", "envelope"};
  std::array<std::uint64_t, 2> released{};
  std::random_device random;
  const auto end = std::chrono::steady_clock::now() + (levels.size() + 1) * patience();
  const auto compare = [&](const Plan& plan) {
    Hosts& some = plan.seed % 2 == 0 ? hosts : *halting;
    const Seen without = play(some, plan, "off");
    BOOST_TEST(without.released == 0U);
    for (std::size_t i = 0; i < levels.size(); ++i) {
      const Seen with = play(some, plan, levels[i]);
      BOOST_TEST(with.by_ranks == without.by_ranks, levels[i] << plan << ": not what is seen without it");
      released[i] += with.released;
    }
  };
  constexpr int enough = 10; // rounds, for some wait to be released at level envelope, too
  int rounds = 0;
  do {
    const bool first = rounds == 0;
    const int steps = first ? 60 : 300;
    compare({first ? 1 : random(), "a,b", 1, steps});
    compare({first ? 2 : random(), "a:2", 1, steps});
    compare({random(), "a:2,b", 1, steps});
    compare({random(), rounds % 2 == 0 ? "a,b" : "a:2", 3, steps / 2});
  } while ((++rounds < enough && std::ranges::count(released, 0U) > 0) ||
           std::chrono::steady_clock::now() < end);
  for (std::size_t i = 0; i < levels.size(); ++i) BOOST_TEST(released[i] > 0U, levels[i]);
  std::cout << rounds << " rounds of calls; waits released: " << released[0] << " at level full, "
            << released[1] << " at level envelope" << std::endl;
}

BOOST_AUTO_TEST_SUITE_END()

} // namespace parc::test
