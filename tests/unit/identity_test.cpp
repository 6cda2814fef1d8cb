// SPDX-License-Identifier: BSD-3-Clause
#include "system/identity.hpp"
#include "tests/unit/scratch.hpp"

#include <array>
#include <boost/test/unit_test.hpp>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

BOOST_AUTO_TEST_SUITE(identity)

BOOST_AUTO_TEST_CASE(a_host_name_has_no_domain) {
  const auto name = parc::short_host_name();
  BOOST_TEST(!name.empty());
  BOOST_TEST(name.find('.') == std::string::npos);
}

BOOST_AUTO_TEST_CASE(random_numbers_differ) {
  BOOST_TEST(parc::random_number() != parc::random_number());
  std::array<std::byte, 64> bytes{};
  parc::fill_random(bytes);
  BOOST_TEST((bytes != std::array<std::byte, 64>{}));
}

BOOST_AUTO_TEST_CASE(user_directories_follow_xdg) {
  parc::test::Environment environment;
  environment.set("HOME", "/somewhere");
  environment.unset("XDG_CONFIG_HOME");
  environment.set("XDG_STATE_HOME", "relative/is/ignored");
  BOOST_TEST(parc::user_config_dir().value() == "/somewhere/.config");
  BOOST_TEST(parc::user_state_dir().value() == "/somewhere/.local/state");
  environment.set("XDG_CONFIG_HOME", "/elsewhere");
  BOOST_TEST(parc::user_config_dir().value() == "/elsewhere");
}

BOOST_AUTO_TEST_CASE(directories_are_made_with_their_parents) {
  const parc::test::Scratch scratch;
  BOOST_TEST(parc::make_directories(scratch / "a/b/c").has_value());
  BOOST_TEST(parc::make_directories(scratch / "a/b/c").has_value());
  struct stat status {};
  BOOST_REQUIRE(stat((scratch / "a/b/c").c_str(), &status) == 0);
  BOOST_TEST((status.st_mode & 0777) == 0700U);
  parc::test::write_file(scratch / "file", "");
  BOOST_TEST(!parc::make_directories(scratch / "file/below").has_value());
}

BOOST_AUTO_TEST_CASE(a_start_time_tells_processes_apart) {
  BOOST_TEST(parc::process_start_time(getpid()) > 0U);
  BOOST_TEST(parc::process_start_time(getpid()) == parc::process_start_time(getpid()));
  BOOST_TEST(parc::process_start_time(1) < parc::process_start_time(getpid()));
  BOOST_TEST(parc::process_start_time(0x7fffffff) == 0U);
}

BOOST_AUTO_TEST_CASE(a_program_has_a_name) {
  BOOST_TEST(parc::program_of(getpid()) == "unit_tests");
  BOOST_TEST(parc::program_of(0x7fffffff) == "");
}

BOOST_AUTO_TEST_CASE(a_zombie_has_ended) {
  const pid_t child = fork();
  if (child == 0) _exit(0);
  siginfo_t how{};
  BOOST_REQUIRE(waitid(P_PID, static_cast<id_t>(child), &how, WEXITED | WNOWAIT) == 0);
  BOOST_TEST(parc::process_start_time(child) == 0U);
  BOOST_TEST(waitpid(child, nullptr, 0) == child);
}

BOOST_AUTO_TEST_SUITE_END()
