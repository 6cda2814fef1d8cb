// SPDX-License-Identifier: BSD-3-Clause
#include "system/nearest.hpp"

#include <array>
#include <boost/test/unit_test.hpp>

BOOST_AUTO_TEST_SUITE(nearest)

BOOST_AUTO_TEST_CASE(finds_what_was_meant) {
  static constexpr std::array<std::string_view, 4> names{"--hosts", "--hostfile", "--np", "--wdir"};
  BOOST_TEST(parc::nearest("--host", names) == "--hosts");
  BOOST_TEST(parc::nearest("--hostflie", names) == "--hostfile");
  BOOST_TEST(parc::nearest("--wd", names) == "--wdir");
  BOOST_TEST(parc::nearest("--pn", names) == "--np");
  BOOST_TEST(parc::nearest("--verbose", names) == "");
  BOOST_TEST(parc::nearest("", names) == "");
  BOOST_TEST(parc::nearest(std::string(100'000, '-'), names) == "");
  BOOST_TEST(parc::did_you_mean("--hostz", names) == "; did you mean --hosts?");
  BOOST_TEST(parc::did_you_mean("--quiet", names) == "");
}

BOOST_AUTO_TEST_SUITE_END()
