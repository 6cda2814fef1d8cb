// SPDX-License-Identifier: BSD-3-Clause
#include "daemon/program/spawn_request.hpp"

#include <boost/test/unit_test.hpp>

namespace parc::daemon {

BOOST_AUTO_TEST_SUITE(spawn_requests)

namespace {

using Numbers = std::vector<std::uint64_t>;

std::string texts(std::initializer_list<std::string_view> all) {
  std::string joined;
  for (const std::string_view each : all) (joined += each) += '\0';
  return joined;
}

} // namespace

BOOST_AUTO_TEST_CASE(one_of_parc_has_hosts_and_arguments) {
  const std::string wish = texts({"a:2", "./x", ""});
  const auto request = parse_spawn(wish, 3);
  BOOST_REQUIRE(request);
  BOOST_TEST(request->ranks() == 3u);
  BOOST_TEST(request->apps[0].hosts == "a:2");
  BOOST_TEST(request->apps[0].arguments == (std::vector<std::string>{"./x", ""}));
  BOOST_TEST(texts_of(*request) == wish);
  BOOST_TEST(!parse_spawn(wish, 0));
  BOOST_TEST(!parse_spawn(wish, 65537));
  BOOST_TEST(!parse_spawn(texts({"a", ""}), 1));
  BOOST_TEST(!parse_spawn("a", 1));
}

BOOST_AUTO_TEST_CASE(those_of_mpi_are_several) {
  const std::string wish = texts({"", "./x", "y", "/d", "A=1", "b", "./z", ""});
  const Numbers numbers{2, 2, 1, 1, 1, 0};
  const auto request = parse_mpi_spawn(wish, numbers);
  BOOST_REQUIRE(request);
  BOOST_TEST(request->ranks() == 3u);
  BOOST_TEST(request->apps.size() == 2u);
  BOOST_TEST(request->apps[0].variables == std::vector<std::string>{"A=1"});
  BOOST_TEST(request->apps[1].hosts == "b");
  BOOST_TEST(request->apps[1].directory.empty());
  BOOST_TEST(texts_of(*request) == wish);
  BOOST_TEST(request->numbers() == numbers);
}

BOOST_AUTO_TEST_CASE(what_makes_no_sense_is_none) {
  const std::string wish = texts({"", "./x", "y", "/d", "A=1", "b", "./z", ""});
  for (const Numbers& wrong : {Numbers{},
                               {2, 2},
                               {0, 2, 1, 1, 1, 0},
                               {2, 0, 3, 1, 1, 0},
                               {2, 2, 1},
                               {2, 2, 1, 1, 1, 1},
                               {2, 1, 2, 1, 1, 0},
                               {2, ~0ul, 1, 1, 1, 0},
                               {2, 2, ~0ul, 1, 1, 0},
                               {65536, 2, 1, 1, 1, 0},
                               {2, 7, 0}})
    BOOST_TEST(!parse_mpi_spawn(wish, wrong));
  BOOST_TEST(!parse_mpi_spawn(texts({"", "./x", "d"}), Numbers{1, 1, 0})); // a relative directory
  BOOST_TEST(!parse_mpi_spawn(texts({"", "", ""}), Numbers{1, 1, 0}));
}

BOOST_AUTO_TEST_SUITE_END()

} // namespace parc::daemon
