// SPDX-License-Identifier: BSD-3-Clause
// What a program is on the host that its job was started on, and elsewhere.
#include "daemon/job/rank_program.hpp"

#include <algorithm>
#include <boost/test/unit_test.hpp>

namespace parc::daemon {

BOOST_AUTO_TEST_SUITE(rank_program)

namespace {

const std::vector<std::string> own{"HOME=/home/other", "PATH=/opt/bin", "LANG=C", "XDG_DATA_HOME=/d"};

Program asked() {
  return {.arguments = {"~/bin/solver", "~/left alone"},
          .environment = {"OMP_NUM_THREADS=4", "TERM=x"},
          .here = {"HOME=/home/me", "PATH=/bin"},
          .directory = "~/run",
          .limits = {}};
}

bool has(const Program& program, const std::string& variable) {
  return std::ranges::count(program.environment, variable) == 1;
}

} // namespace

BOOST_AUTO_TEST_CASE(where_it_is_started_it_is_the_callers) {
  const Program here = program_of_ranks(asked(), true, own, {});
  BOOST_TEST(here.directory == "/home/me/run");
  BOOST_TEST(here.arguments[0] == "/home/me/bin/solver");
  BOOST_TEST(here.arguments[1] == "~/left alone");
  BOOST_TEST((has(here, "PATH=/bin") && has(here, "OMP_NUM_THREADS=4")));
  BOOST_TEST(!has(here, "XDG_DATA_HOME=/d"));
  BOOST_TEST(here.here.empty());
}

BOOST_AUTO_TEST_CASE(elsewhere_home_and_path_are_that_hosts) {
  Program program = asked();
  program.environment.emplace_back("PATH=/asked/for"); // by -x
  const Program there = program_of_ranks(program, false, own, "/opt/lib");
  BOOST_TEST(there.directory == "/home/other/run");
  BOOST_TEST((has(there, "HOME=/home/other") && has(there, "XDG_DATA_HOME=/d") && has(there, "TERM=x")));
  BOOST_TEST((has(there, "PATH=/asked/for") && !has(there, "PATH=/opt/bin")));
  BOOST_TEST(!has(there, "LANG=C")); // no matter of the site
  BOOST_TEST(has(there, "LD_LIBRARY_PATH=/opt/lib"));
  BOOST_TEST(has(program_of_ranks(program, false, own, {}), "HOME=/home/other"));
  program.environment.emplace_back("LD_LIBRARY_PATH=/first");
  BOOST_TEST(has(program_of_ranks(program, false, own, "/opt/lib"), "LD_LIBRARY_PATH=/first:/opt/lib"));
}

// A home that both have may be one, with what was installed there.
BOOST_AUTO_TEST_CASE(where_homes_are_the_same_the_callers_paths_go_first) {
  const std::vector<std::string> alike{"HOME=/home/me", "PATH=/opt/bin:/bin", "LD_LIBRARY_PATH="};
  Program program = asked();
  program.here = {"HOME=/home/me", "PATH=/home/me/bin:/bin::", "LD_LIBRARY_PATH=/home/me/lib"};
  const Program there = program_of_ranks(program, false, alike, "/opt/lib");
  BOOST_TEST(has(there, "PATH=/home/me/bin:/bin:/opt/bin"));
  BOOST_TEST(has(there, "LD_LIBRARY_PATH=/home/me/lib:/opt/lib"));
}

// Hosts may share directories without having one home.
BOOST_AUTO_TEST_CASE(what_is_not_there_may_be_in_the_home_there) {
  Program program = asked();
  program.directory = "/home/me/work/run";
  const Program there = program_of_ranks(program, false, own, {});
  BOOST_TEST(there.directory == "/home/me/work/run");
  BOOST_TEST(there.directory_otherwise == "/home/other/work/run");
  BOOST_TEST(program_of_ranks(program, true, own, {}).directory_otherwise.empty());
  program.directory = "/home/meagre";
  BOOST_TEST(program_of_ranks(program, false, own, {}).directory_otherwise.empty());
}

// Ranks may be told of another home than who they belong to has, and of none.
BOOST_AUTO_TEST_CASE(paths_lie_in_the_home_of_who_they_belong_to) {
  Program program = asked();
  program.environment.emplace_back("HOME=/scratch");
  BOOST_TEST(program_of_ranks(program, true, own, {}).directory == "/home/me/run");
  BOOST_TEST(program_of_ranks(program, false, own, {}).directory == "/home/other/run");
  const Program homeless = program_of_ranks(asked(), false, {"HOME=", "PATH"}, {});
  BOOST_TEST(homeless.directory.ends_with("/run"));
  BOOST_TEST(!has(homeless, "HOME="));
}

BOOST_AUTO_TEST_CASE(what_is_said_of_a_host_goes_before_what_holds_for_all) {
  const Program there = with_place(asked(), {.prefix = {}, .wdir = "/data", .env = {"TERM=y", "NEW=1"}});
  BOOST_TEST(there.directory == "/data");
  BOOST_TEST((has(there, "TERM=y") && has(there, "NEW=1") && !has(there, "TERM=x")));
  BOOST_TEST(with_place(asked(), {}).directory == "~/run");
}

BOOST_AUTO_TEST_SUITE_END()

} // namespace parc::daemon
