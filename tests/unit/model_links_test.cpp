// SPDX-License-Identifier: BSD-3-Clause
// Links, machines and granularities as people write them to parc model.
#include "tests/unit/scratch.hpp"
#include "tools/parc/model/links.hpp"

#include <boost/test/unit_test.hpp>
#include <cmath>
#include <fstream>

namespace parc::tools {

BOOST_AUTO_TEST_SUITE(model_links)

BOOST_AUTO_TEST_CASE(links) {
  const auto wan = parse_link("wan=20ms,100mbit");
  BOOST_REQUIRE(wan);
  BOOST_TEST(wan.value().name == "wan");
  BOOST_TEST(wan.value().link.startup == 0.01);
  BOOST_TEST(wan.value().link.bandwidth == 12.5e6);
  const auto unnamed = parse_link("300us,12.5MB/s");
  BOOST_REQUIRE(unnamed);
  BOOST_TEST(unnamed.value().name == "300us,12.5MB/s");
  BOOST_TEST(unnamed.value().link.startup == 150e-6);
  BOOST_TEST(unnamed.value().link.bandwidth == 12.5e6);
  BOOST_TEST(std::isinf(parse_link("0,unlimited").value().link.bandwidth));
  for (const char* wrong : {"", "wan", "wan=", "=20ms,1gbit", "20ms", "20ms,", ",1gbit", "20,1gbit", "20ms,1",
                            "-1ms,1gbit", "20ms,0", "nanms,1gbit", "20ms,1gbit,3", "1e9s,1gbit"}) {
    const auto refused = parse_link(wrong);
    BOOST_TEST(!refused, wrong);
    if (!refused) BOOST_TEST(!refused.error().text.empty());
  }
}

BOOST_AUTO_TEST_CASE(machines_and_granularities) {
  const auto machine = parse_machine("H2=5,0.2");
  BOOST_REQUIRE(machine);
  BOOST_TEST(machine.value().name == "H2");
  BOOST_TEST(machine.value().gamma_h == 5.0);
  BOOST_TEST(machine.value().omega == 0.2);
  for (const char* wrong : {"", "5", "H=5", "H=5,x", "5,-1", "inf,1", "nan,1", "1e13,0"})
    BOOST_TEST(!parse_machine(wrong), wrong);
  BOOST_TEST(parse_granularity("5").value().most == 5.0);
  BOOST_TEST(parse_granularity("2:10").value().least == 2.0);
  BOOST_TEST(parse_granularity("2:10").value().most == 10.0);
  for (const char* wrong : {"", "0", "-1", "10:2", "2:", ":2", "2:x", "2 10"})
    BOOST_TEST(!parse_granularity(wrong), wrong);
  BOOST_TEST(parse_messages("3").value()(100) == 3.0);
  BOOST_TEST(parse_messages("sqrt").value()(100) == 10.0);
  BOOST_TEST(parse_messages("p").value()(100) == 100.0);
  for (const char* wrong : {"", "0", "-1", "P", "sqrt(p)", "1x"}) BOOST_TEST(!parse_messages(wrong), wrong);
}

BOOST_AUTO_TEST_CASE(probed_links) {
  const test::Scratch scratch;
  const std::string file = scratch / "probed.json";
  const auto read = [&](const std::string& text) {
    std::ofstream(file) << text;
    return read_probed_link(file);
  };
  const auto link = read(R"({"schema": 1, "from": "a", "to": "b", "figures": [
    {"figure": "startup", "median": 10500.0}, {"figure": "bandwidth there", "median": 11.8}]})");
  BOOST_REQUIRE(link);
  BOOST_TEST(link.value().name == "a to b");
  BOOST_TEST(link.value().link.startup == 0.0105, boost::test_tools::tolerance(1e-12));
  BOOST_TEST(link.value().link.bandwidth == 11.8e6, boost::test_tools::tolerance(1e-12));
  for (
      const char* wrong :
      {"", "{}", "[1]", R"({"figures": 3})",
       R"({"schema": 1, "figures": [3, {"figure": "startup", "median": "x"}]})",
       R"({"schema": 1, "figures": [{"figure": "startup", "median": 1}]})",
       R"({"schema": 1, "figures": [{"figure": "startup", "median": 0}, {"figure": "bandwidth there", "median": 1}]})"})
    BOOST_TEST(!read(wrong), wrong);
  const auto later = read(R"({"schema": 2, "figures": []})");
  BOOST_REQUIRE(!later);
  BOOST_TEST(later.error().text.find("another version") != std::string::npos, later.error().text);
  BOOST_TEST(!read_probed_link(scratch / "none"));
}

BOOST_AUTO_TEST_SUITE_END()

} // namespace parc::tools
