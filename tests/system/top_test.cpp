// SPDX-License-Identifier: BSD-3-Clause
// parc top: in a file, and on a terminal that the test is.
#include "tests/support/hosts.hpp"
#include "tests/support/terminal.hpp"

#include <boost/test/unit_test.hpp>
#include <csignal>
#include <regex>

namespace parc::test {
namespace {

constexpr const char* leave_screen = "\x1b[?1049l"; // an xterm's

} // namespace

BOOST_AUTO_TEST_SUITE(top)

BOOST_AUTO_TEST_CASE(in_a_file_it_prints_tables_with_rates) {
  Hosts hosts(2);
  Process job = hosts.run({"-n", "3", "--hosts", "a:2,b", PARC_TEST_PROGRAMS "/ring", "100000", "0"});
  BOOST_TEST(eventually([&] {
    const auto seen = hosts.status();
    return seen["sessions"].size() == 2 && seen["links"].size() == 1 && seen["links"][0]["messages_out"] > 10;
  }));
  Process top = hosts.parc("top", {"--batch", "-n", "2", "--interval", "0.5", "--sort", "out"});
  BOOST_TEST(top.wait() == 0);
  const std::string text = top.output();
  const auto matches = [&](const std::string& expression) {
    const std::regex lines(expression);
    return std::distance(std::sregex_iterator(text.begin(), text.end(), lines), std::sregex_iterator());
  };
  BOOST_TEST(matches("kernel of host a: process " + std::to_string(hosts[0].kernel().id())) == 2, text);
  BOOST_TEST(matches("\nLINK +STATE +RTT") == 2, text);
  BOOST_TEST(matches("\nb +up +[0-9.]+ ms +[0-9.]+ [KMG]iB +[0-9.]+ [KMG]iB +[0-9]") == 2, text);
  BOOST_TEST(matches("\n[0-9a-f]+ +0 +ring +(waits|runs) +[0-9.]+ [KMG]iB +[0-9.]+ [KMG]iB +[0-9]+ %") == 2,
             text);
  BOOST_TEST(matches("\n[0-9a-f]+ +1 +ring ") == 2, text);
}

BOOST_AUTO_TEST_CASE(on_a_terminal_it_draws_until_q) {
  Hosts hosts(1);
  Process job = hosts.run({"-n", "2", PARC_TEST_PROGRAMS "/ring", "1000", "0"});
  Terminal terminal(
      "xterm", {PARC_TEST_BIN "/parc", "top", "--runtime-dir", hosts[0].runtime_dir(), "--interval", "0.1"});
  BOOST_TEST(terminal.shows("kernel of host a"));
  BOOST_TEST(terminal.shows("ring"));
  BOOST_TEST(!terminal.is_as_before());
  terminal.type("m");
  terminal.resize(5); // all is drawn anew
  BOOST_TEST(terminal.shows("more; q: quit; sorted by messages"));
  terminal.resize(40);
  BOOST_TEST(terminal.shows("ring"));
  terminal.type("q");
  BOOST_TEST(terminal.wait() == 0);
  BOOST_TEST(terminal.sent(leave_screen));
  BOOST_TEST(terminal.is_as_before());
}

BOOST_AUTO_TEST_CASE(a_signal_gives_the_terminal_back) {
  Hosts hosts(1);
  Terminal terminal("xterm", {PARC_TEST_BIN "/parc", "top", "--runtime-dir", hosts[0].runtime_dir()});
  BOOST_TEST(terminal.shows("kernel of host a"));
  terminal.signal(SIGINT);
  (void)terminal.wait();
  BOOST_TEST(terminal.sent(leave_screen));
  BOOST_TEST(terminal.is_as_before());
}

BOOST_AUTO_TEST_CASE(it_ends_with_its_terminal) {
  Hosts hosts(1);
  Terminal terminal("xterm",
                    {"/bin/sh", "-c",
                     "trap '' HUP; exec " PARC_TEST_BIN "/parc top --runtime-dir " + hosts[0].runtime_dir()});
  BOOST_TEST(terminal.shows("kernel of host a"));
  terminal.hang_up();
  (void)terminal.wait();
}

BOOST_AUTO_TEST_CASE(it_goes_on_when_the_kernel_dies_and_with_the_next_one) {
  Hosts hosts(1);
  Terminal terminal(
      "xterm", {PARC_TEST_BIN "/parc", "top", "--runtime-dir", hosts[0].runtime_dir(), "--interval", "0.1"});
  BOOST_TEST(terminal.shows("kernel of host a: process"));
  hosts[0].kernel().signal(SIGSTOP);
  hosts[0].kernel().signal(SIGKILL);
  BOOST_TEST(hosts[0].kernel().wait() == 128 + SIGKILL);
  BOOST_TEST(terminal.shows("DEAD"));
  hosts[0].start();
  BOOST_TEST(terminal.shows("a second: "));
  terminal.type("q");
  BOOST_TEST(terminal.wait() == 0);
}

BOOST_AUTO_TEST_CASE(where_it_cannot_draw_it_says_what_can) {
  Hosts hosts(1);
  Process no_terminal = hosts.parc("top", {});
  BOOST_TEST(no_terminal.wait() == 1);
  BOOST_TEST(no_terminal.errors().find("parc top --batch") != std::string::npos);
  Terminal unknown("nonsense", {PARC_TEST_BIN "/parc", "top", "--runtime-dir", hosts[0].runtime_dir()});
  BOOST_TEST(unknown.wait() == 1);
  BOOST_TEST(unknown.sent("terminal of type \"nonsense\""));
  for (const auto& words : std::vector<std::vector<std::string>>{
           {"--interval", "0"}, {"--interval", "x"}, {"--sort", "colour"}, {"-n", "-1"}, {"a"}}) {
    Process wrong = hosts.parc("top", words);
    BOOST_TEST(wrong.wait() == 2, words[0]);
    BOOST_TEST(wrong.errors().starts_with("parc: "));
  }
}

BOOST_AUTO_TEST_SUITE_END()

} // namespace parc::test
