// SPDX-License-Identifier: BSD-3-Clause
#include "jobs/placement.hpp"

#include <boost/test/unit_test.hpp>

namespace parc {

BOOST_AUTO_TEST_SUITE(placement)

namespace {

std::vector<HostSlots> hosts(const char* text) {
  const auto parsed = parse_hosts(text);
  return parsed ? parsed.value() : std::vector<HostSlots>{};
}

} // namespace

BOOST_AUTO_TEST_CASE(hosts_and_slots) {
  BOOST_TEST((hosts("a") == std::vector<HostSlots>{{"a", 1}}));
  BOOST_TEST((hosts("a:2,b.c-d,a") == std::vector<HostSlots>{{"a", 3}, {"b.c-d", 1}}));
  BOOST_TEST((hosts("[::1]:4,[fe80::1],fe80::2") ==
              std::vector<HostSlots>{{"::1", 4}, {"fe80::1", 1}, {"fe80::2", 1}}));
  for (const char* wrong : {"", "a,", ",a", "a:", "a:0", "a:x", "a:4097", "a:99999999999", "a:-1", "a: 2",
                            "-a", "a b", "[::1", "[]", "[::1]4"})
    BOOST_TEST(!parse_hosts(wrong), wrong);
}

BOOST_AUTO_TEST_CASE(several_programs_go_on_where_those_before_have_ended) {
  const RanksOfApps all{{hosts("a:2,b:2"), hosts("c"), hosts("c,b")},
                        {{0, 1}, {1, 2}, {0, 2}, {2, 2}, {0, 6}}};
  const Placement placed = place_all(all, hosts("a:2,d"));
  BOOST_TEST((placed.hosts == std::vector<HostSlots>{{"a", 2}, {"d", 1}, {"c", 1}, {"b", 2}}));
  BOOST_TEST(
      (placed.runs ==
       std::vector<Run>{{0, 1}, {2, 2}, {0, 1}, {3, 1}, {2, 1}, {3, 1}, {3, 1}, {0, 2}, {3, 2}, {0, 1}}));
  BOOST_TEST((place_all({{hosts("a,b")}, {{0, 1}}}).hosts == std::vector<HostSlots>{{"a", 1}}));
  const RanksOfApps by_turns{{hosts("a,b")}, {{0, 1}, {0, 1}, {0, 1}}};
  BOOST_TEST((place_all(by_turns).runs == std::vector<Run>{{0, 1}, {1, 1}, {0, 1}}));
}

BOOST_AUTO_TEST_CASE(a_port_is_no_number_of_slots) {
  BOOST_TEST((hosts("a:4096") == std::vector<HostSlots>{{"a", 4096}}));
  for (const char* port : {"u1:7400", "a,u1:65535"}) {
    const auto parsed = parse_hosts(port);
    BOOST_REQUIRE(!parsed);
    for (const char* word :
         {"at most 4096", "a port does not belong here", "[hosts] of parcd.toml: u1 = \"ADDRESS:"})
      BOOST_TEST(parsed.error().text.find(word) != std::string::npos, parsed.error().text);
  }
}

BOOST_AUTO_TEST_CASE(slots_in_order_and_round_again) {
  const auto two = hosts("a:2,b:1");
  BOOST_TEST((place_all({{two}, {{0, 1}}}).runs == std::vector<Run>{{0, 1}}));
  BOOST_TEST((place_all({{two}, {{0, 3}}}).runs == std::vector<Run>{{0, 2}, {1, 1}}));
  BOOST_TEST((place_all({{two}, {{0, 7}}}).runs == std::vector<Run>{{0, 2}, {1, 1}, {0, 2}, {1, 1}, {0, 1}}));
  BOOST_TEST((place_all({{hosts("a:3")}, {{0, 8}}}).runs == std::vector<Run>{{0, 8}}));
}

BOOST_AUTO_TEST_SUITE_END()

} // namespace parc
