// SPDX-License-Identifier: BSD-3-Clause
// Connections between hosts that end, at any byte and for any time: jobs go on where they were, until a host
// has been silent for too long.
#include "tests/support/hosts.hpp"
#include "tests/support/path.hpp"

#include <algorithm>
#include <boost/test/data/test_case.hpp>
#include <boost/test/unit_test.hpp>
#include <csignal>
#include <map>
#include <nlohmann/json.hpp>

namespace parc::test {
namespace {

bool contains(const std::string& text, const std::string& part) {
  return text.find(part) != text.npos;
}

// Every kernel reaches the others over paths that can be cut.
struct Paths {
  std::map<std::uint16_t, std::unique_ptr<Path>> to; // by port
  Hosts hosts;

  explicit Paths(std::size_t count, std::vector<std::string> options = {})
      : hosts(count, std::move(options), {}, [this](std::uint16_t port) {
          return to.emplace(port, std::make_unique<Path>(port)).first->second->port();
        }) {}
  Path& operator[](std::size_t host) { return *to.at(hosts[host].port()); }
  [[nodiscard]] std::uint64_t cuts() const {
    std::uint64_t sum = 0;
    for (const auto& [port, path] : to) sum += path->cuts();
    return sum;
  }
  [[nodiscard]] std::uint64_t passed() const {
    std::uint64_t sum = 0;
    for (const auto& [port, path] : to) sum += path->passed();
    return sum;
  }
  void each(void (Path::*what)()) {
    for (const auto& [port, path] : to) (*path.*what)();
  }
  void check(Process& run) {
    BOOST_TEST(run.wait() == 0, run << hosts);
    BOOST_TEST(run.errors() == "");
  }
};

// The programs of a joined job run on, and belong to it, though a later link has another number.
void end_over_a_later_link(bool there_is_one) {
  Paths paths(2, {"--link-timeout-s", "2"});
  std::vector<Process> all;
  for (const std::size_t host : {0u, 0u, 1u})
    all.push_back(
        paths.hosts.start({"env", "PARC_RUNTIME_DIR=" + paths.hosts[host].runtime_dir(),
                           PARC_TEST_PROGRAMS "/joiner", "j@a", std::to_string(all.size()), "3", "sits"}));
  BOOST_REQUIRE(eventually(
      [&] { return std::ranges::none_of(all, [](Process& each) { return each.output().empty(); }); }));
  paths.each(&Path::down);
  for (const std::size_t host : {0u, 1u})
    BOOST_TEST(
        eventually([&] { return contains(paths.hosts[host].log(), "no sign of life of it for 2 s"); }));
  paths.each(&Path::up);
  const std::string job = paths.hosts.status()["jobs"][0]["job"];
  if (there_is_one) {
    Process again = paths.hosts.run({"--hosts", "a,b", "true"});
    paths.check(again);
    Process dump = paths.hosts.parc("dump", {"--json", job});
    BOOST_TEST(dump.wait() == 0, dump);
    BOOST_TEST(nlohmann::json::parse(dump.output())["ranks"].size() == 3U);
  }
  Process kill = paths.hosts.parc("kill", {"-s", "USR1", job});
  BOOST_TEST(kill.wait() == 0, kill);
  for (Process& each : all) BOOST_TEST(each.wait() == 128 + SIGUSR1);
}

// It says nothing any more, and does not end: others bring what it should have brought.
void run_over_a_silent_stream(const std::string& early_release) {
  Paths paths(2, {"--streams", "4"});
  const std::vector<std::vector<std::string>> programs{
      {PARC_TEST_PROGRAMS "/ring", "16000000", "100"},
      {PARC_TEST_PROGRAMS "/random_messages", "8", "6000"},
      {PARC_TEST_PROGRAMS "/early_gets", "random", "8", "200"}};
  for (const std::vector<std::string>& program : programs) {
    std::vector<std::string> words{"--hosts", "a,b", "--early-release=" + early_release};
    words.insert(words.end(), program.begin(), program.end());
    Process run = paths.hosts.run(words);
    BOOST_REQUIRE(eventually([&] {
      const auto links = paths.hosts.status()["links"];
      return !run.running() || (!links.empty() && links[0]["streams"] == 4);
    }));
    const std::uint64_t before = paths.passed();
    BOOST_REQUIRE(eventually([&] { return paths.passed() > before + 10'000'000 || !run.running(); }));
    BOOST_TEST(run.running());
    paths.each(&Path::hold_newest);
    paths.check(run);
    paths.each(&Path::go_on);
  }
}

} // namespace

BOOST_AUTO_TEST_SUITE(outages)

// The program compares its plate with the sequential solution bit for bit.
BOOST_AUTO_TEST_CASE(heat_over_a_link_that_is_cut_again_and_again) {
  for (const std::string variant : {"I.1", "I.3"}) {
    Paths paths(2);
    Process run = paths.hosts.run({"--hosts", "a,b", PARC_TEST_BIN "/heat", "--variant", variant, "--check",
                                   "--nx", "32", "--ny", "4000", "--steps", "1000"});
    for (int cut = 1; cut <= 20; ++cut) {
      const std::uint64_t before = paths.passed();
      BOOST_REQUIRE(eventually([&] { return paths.passed() > before + 200'000 || !run.running(); }));
      paths.each(&Path::cut);
    }
    paths.check(run);
    BOOST_TEST(paths.cuts() >= 20u);
    BOOST_TEST(eventually([&] { return contains(paths.hosts[0].log(), "the link to host b is up again"); }));
  }
}

BOOST_DATA_TEST_CASE(random_messages_over_links_that_end_at_any_byte,
                     boost::unit_test::data::make({"none", "envelope", "full"}), level) {
  Paths paths(3);
  for (const auto& [port, path] : paths.to) path->cut_often(3'000'000);
  std::vector<std::string> words{"--hosts", "a,b,c"};
  if (level != std::string("none")) words.push_back(std::string("--early-release=") + level);
  words.insert(words.end(), {PARC_TEST_PROGRAMS "/random_messages", "5", "1500"});
  Process run = paths.hosts.run(words);
  paths.check(run);
  BOOST_TEST(paths.cuts() >= 10u);
}

// The program stores into its windows as soon as it may, and says what it got that was not there.
BOOST_DATA_TEST_CASE(gets_over_links_that_end_at_any_byte, boost::unit_test::data::make({"arena", "heap"}),
                     kind) {
  Paths paths(3);
  for (const auto& [port, path] : paths.to) path->cut_often(3'000'000);
  Process run =
      paths.hosts.run({"--hosts", "a,b,c", PARC_TEST_PROGRAMS "/early_gets", "random", "5", "30", kind});
  paths.check(run);
  BOOST_TEST(paths.cuts() >= 10u);
}

// Who reads a message looks for what was put before it.
BOOST_DATA_TEST_CASE(puts_over_links_that_end_at_any_byte,
                     boost::unit_test::data::make({"off", "envelope", "full"}), level) {
  Paths paths(3);
  for (const auto& [port, path] : paths.to) path->cut_often(3'000'000);
  Process run = paths.hosts.run({std::string("--early-release=") + level, "--hosts", "a,b,c",
                                 PARC_TEST_PROGRAMS "/puts", "random", "7", "200"});
  paths.check(run);
  BOOST_TEST(paths.cuts() >= 10u);
}

BOOST_DATA_TEST_CASE(one_of_several_streams_is_silent, boost::unit_test::data::make({"off", "full"}), level) {
  run_over_a_silent_stream(level);
}

// Nothing of it is there but the time that it took.
BOOST_AUTO_TEST_CASE(a_link_that_is_down_for_a_while) {
  Paths paths(2);
  Process run = paths.hosts.run({"--hosts", "a,b", PARC_TEST_PROGRAMS "/random_messages", "6", "1000"});
  BOOST_REQUIRE(eventually([&] { return paths.passed() > 2'000'000; }));
  paths.each(&Path::down);
  BOOST_TEST(eventually([&] { return contains(paths.hosts[0].log(), "trying to reach host b again"); }));
  BOOST_TEST(run.running());
  Process status = paths.hosts.parc("status", {});
  BOOST_TEST(status.wait() == 0);
  BOOST_TEST(contains(status.output(), "reconnecting"), status.output());
  paths.each(&Path::up);
  paths.check(run);
}

BOOST_AUTO_TEST_CASE(a_host_that_is_silent_for_too_long_is_gone_for_both) {
  Paths paths(2, {"--link-timeout-s", "2"});
  Process run = paths.hosts.run({"--hosts", "a,b", PARC_TEST_PROGRAMS "/ring", "3000000", "0"});
  BOOST_REQUIRE(eventually([&] { return paths.passed() > 2'000'000; }));
  paths.each(&Path::down);
  BOOST_TEST(run.wait() == 125);
  BOOST_TEST(contains(run.errors(), "parc: host b was lost"), run.errors());
  for (const std::size_t host : {0u, 1u})
    BOOST_TEST(
        eventually([&] { return contains(paths.hosts[host].log(), "no sign of life of it for 2 s"); }));
  BOOST_TEST(eventually([&] { return paths.hosts.ranks().empty(); }));
  paths.each(&Path::up);
  Process after = paths.hosts.run({"--hosts", "a,b", PARC_TEST_PROGRAMS "/ring", "10000", "3"});
  paths.check(after);
}

BOOST_AUTO_TEST_CASE(a_joined_job_is_ended_over_the_link_that_came_after) {
  end_over_a_later_link(true);
}

BOOST_AUTO_TEST_CASE(a_joined_job_is_ended_over_a_link_that_is_made_for_it) {
  end_over_a_later_link(false);
}

// Only the one that waits for the other gives it up; asked for the session, it says that there is none.
BOOST_AUTO_TEST_CASE(one_that_was_given_up_hears_of_it) {
  Paths paths(2, {"--link-timeout-s", "2"});
  Process run = paths.hosts.run({"--hosts", "a,b", PARC_TEST_PROGRAMS "/ring", "3000000", "0"});
  BOOST_REQUIRE(eventually([&] { return paths.passed() > 2'000'000; }));
  paths.hosts[1].kernel().signal(SIGSTOP);
  paths.each(&Path::down);
  BOOST_TEST(eventually([&] { return contains(paths.hosts[0].log(), "no sign of life of it for 2 s"); }));
  paths.each(&Path::up);
  paths.hosts[1].kernel().signal(SIGCONT);
  BOOST_TEST(run.wait() == 125);
  BOOST_TEST(eventually([&] { return paths.hosts.ranks().empty(); }), paths.hosts);
  Process after = paths.hosts.run({"--hosts", "a,b", PARC_TEST_PROGRAMS "/ring", "10000", "3"});
  paths.check(after);
}

BOOST_AUTO_TEST_CASE(kernels_that_are_stopped_for_a_while) {
  Paths paths(2);
  Process run = paths.hosts.run({"--hosts", "a,b", PARC_TEST_PROGRAMS "/random_messages", "7", "1000"});
  for (const std::size_t host : {0u, 1u}) {
    const std::uint64_t before = paths.passed();
    BOOST_REQUIRE(eventually([&] { return paths.passed() > before + 2'000'000; }));
    paths.hosts[host].kernel().signal(SIGSTOP);
    paths.each(&Path::cut);
    BOOST_TEST(eventually([&] { return contains(paths.hosts[1 - host].log(), "trying to reach host"); }));
    paths.hosts[host].kernel().signal(SIGCONT);
  }
  paths.check(run);
}

// The job on it is lost; the kernel that was started in its place says who it replaces.
BOOST_AUTO_TEST_CASE(a_kernel_that_was_started_again_is_another) {
  Paths paths(2);
  Process run = paths.hosts.run({"--hosts", "a,b", PARC_TEST_PROGRAMS "/ring", "3000000", "0"});
  BOOST_REQUIRE(eventually([&] { return paths.passed() > 2'000'000; }));
  paths[1].down(); // so that no refusal tells
  paths.hosts[1].kernel().signal(SIGKILL);
  BOOST_TEST(paths.hosts[1].kernel().wait() == 128 + SIGKILL);
  paths.hosts[1].start();
  paths[1].up();
  BOOST_TEST(run.wait() == 125);
  BOOST_TEST(contains(run.errors(), "parc: host b was lost"), run.errors());
  BOOST_TEST(
      eventually([&] { return contains(paths.hosts[0].log(), "another has been started in its place"); }));
  Process after = paths.hosts.run({"--hosts", "a,b", PARC_TEST_PROGRAMS "/ring", "10000", "3"});
  paths.check(after);
}

// Whom the other side has never reached, and some of whose successors never had a link to it.
BOOST_AUTO_TEST_CASE(a_kernel_that_was_started_again_and_again_is_another) {
  Paths paths(2, {"--link-timeout-s", "600"}); // nor does its silence tell
  paths[0].down();
  Process run = paths.hosts.run({"--hosts", "a,b", PARC_TEST_PROGRAMS "/ring", "3000000", "0"});
  BOOST_REQUIRE(eventually([&] { return paths.passed() > 2'000'000; }));
  for (int time = 0; time < 3; ++time) {
    paths.hosts[0].kernel().signal(SIGKILL);
    BOOST_TEST(paths.hosts[0].kernel().wait() == 128 + SIGKILL);
    paths.hosts[0].start();
  }
  BOOST_TEST(run.wait() == 125);
  paths[0].up();
  const bool over = eventually([&] { return paths.hosts.status(1)["jobs"].empty(); });
  BOOST_TEST(over, paths.hosts);
  BOOST_TEST(
      eventually([&] { return contains(paths.hosts[1].log(), "another has been started in its place"); }));
  BOOST_TEST(eventually([&] { return paths.hosts.ranks().empty(); }));
  BOOST_TEST(paths.hosts.status(1)["links"].size() == 1U);
  Process after = paths.hosts.run({"--hosts", "a,b", PARC_TEST_PROGRAMS "/ring", "10000", "3"});
  paths.check(after);
}

BOOST_AUTO_TEST_SUITE_END()

} // namespace parc::test
