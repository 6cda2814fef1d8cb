// SPDX-License-Identifier: BSD-3-Clause
// Of which pairs of hosts parc up and parc doctor speak, and what they say.
#include "tools/parc/hosts/pairs.hpp"

#include "tools/parc/hosts/start_hosts.hpp"

#include <boost/test/unit_test.hpp>

namespace parc::tools {

BOOST_AUTO_TEST_SUITE(pairs)

namespace {

StartedHost host(std::string name, std::vector<control::HostTried> tried) {
  return {.host = std::move(name), .tried = std::move(tried)};
}
control::HostTried reached(std::string name, std::string way) {
  return {.name = std::move(name), .way = std::move(way)};
}
control::HostTried missed(std::string name, std::string why) {
  return {.name = std::move(name), .text = std::move(why)};
}

} // namespace

BOOST_AUTO_TEST_CASE(hosts_that_were_not_asked_are_no_pair) {
  const Pairs none = pairs_of(std::vector{host("a", {}), host("b", {})});
  BOOST_TEST(none.summary.empty());
  BOOST_TEST(none.problems.empty());
}

BOOST_AUTO_TEST_CASE(two_of_them_are_named) {
  const Pairs two = pairs_of(
      std::vector{host("b", {reached("c", "direct")}), host("a", {}), host("c", {reached("b", "direct")})});
  BOOST_TEST(two.summary == "b and c reach each other");
  const Pairs relayed =
      pairs_of(std::vector{host("b", {reached("c", "relay")}), host("c", {reached("b", "relay")})});
  BOOST_TEST(relayed.summary == "b and c reach each other, relayed");
  BOOST_TEST(relayed.problems.empty());
}

BOOST_AUTO_TEST_CASE(one_side_that_reaches_the_other_is_enough) {
  StartedHost silent = host("c", {});
  silent.not_tried = "its kernel has not answered";
  const Pairs pairs = pairs_of(std::vector{host("b", {reached("c", "direct"), missed("d", "no way")}), silent,
                                           host("d", {reached("b", "relay"), reached("c", "relay")})});
  BOOST_TEST(pairs.summary == "all 3 pairs of these hosts reach each other, 2 of them relayed");
  BOOST_TEST(pairs.problems.empty());
}

BOOST_AUTO_TEST_CASE(a_pair_without_a_way_says_what_both_met) {
  StartedHost silent = host("d", {});
  silent.not_tried = "its kernel has not answered";
  const Pairs pairs =
      pairs_of(std::vector{host("b", {missed("c", "nobody listens"), missed("d", "too late")}),
                           host("c", {missed("b", "no route"), reached("d", "direct")}), silent});
  BOOST_TEST(pairs.summary == "1 of the 3 pairs of these hosts reach each other");
  BOOST_TEST_REQUIRE(pairs.problems.size() == 2U);
  BOOST_TEST(pairs.problems[0] ==
             "hosts b and c do not reach each other: b says: nobody listens; c says: no route");
  BOOST_TEST(pairs.problems[1] ==
             "hosts b and d do not reach each other: b says: too late; d: its kernel has not answered");
}

BOOST_AUTO_TEST_CASE(more_than_can_be_asked) {
  const Pairs pairs = pairs_of(std::vector(control::HostQuestion::most_reached + 1, host("b", {})));
  BOOST_TEST(pairs.summary == "whether they reach each other is looked at only of up to 64 hosts");
}

BOOST_AUTO_TEST_SUITE_END()

} // namespace parc::tools
