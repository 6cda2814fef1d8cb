// SPDX-License-Identifier: BSD-3-Clause
// How people write link settings.
#include "tools/wanlink/settings.hpp"

#include <boost/test/unit_test.hpp>

using namespace parc::wanlink;

BOOST_AUTO_TEST_SUITE(settings)

BOOST_AUTO_TEST_CASE(units) {
  const auto change =
      parse({.delay = "1.5ms", .jitter = "20us", .rate = "300kbit", .queue = "64KiB", .loss = "2%"});
  BOOST_REQUIRE(change);
  BOOST_TEST(*change.value().forth.delay_ns == 1'500'000);
  BOOST_TEST(*change.value().back.jitter_ns == 20'000);
  BOOST_TEST(*change.value().forth.rate == 300'000U);
  BOOST_TEST(*change.value().back.queue == 65'536U);
  BOOST_TEST(*change.value().forth.loss == 0.02);
}

BOOST_AUTO_TEST_CASE(two_directions) {
  const auto change = parse({.rtt = "30ms", .rate = "50mbit:unlimited", .loss = ":0.5"});
  BOOST_REQUIRE(change);
  BOOST_TEST(*change.value().forth.delay_ns == 15'000'000);
  BOOST_TEST(*change.value().forth.rate == 50'000'000U);
  BOOST_TEST(*change.value().back.rate == 0U);
  BOOST_TEST(!change.value().forth.loss.has_value());
  BOOST_TEST(*change.value().back.loss == 0.5);
}

BOOST_AUTO_TEST_CASE(nonsense_is_named) {
  for (const ChangeText& text :
       {ChangeText{.delay = "10"}, ChangeText{.delay = "fast"}, ChangeText{.rate = "10mb"},
        ChangeText{.loss = "101%"}, ChangeText{.loss = "-1%"}, ChangeText{.queue = "1e99"},
        ChangeText{.delay = "nan ms"}, ChangeText{.jitter = "1ms:2"}}) {
    const auto change = parse(text);
    BOOST_REQUIRE(!change);
    BOOST_TEST(change.error().text.starts_with("--"));
  }
}

BOOST_AUTO_TEST_CASE(a_change_travels_as_json) {
  const Change change{.delay_ns = 5, .loss = 0.25};
  const auto copy = nlohmann::json(change).get<Change>();
  Settings settings{.delay_ns = 1, .jitter_ns = 2, .rate = 3, .queue = 4, .loss = 0};
  copy.apply_to(settings);
  BOOST_TEST(settings.delay_ns == 5);
  BOOST_TEST(settings.jitter_ns == 2);
  BOOST_TEST(settings.rate == 3U);
  BOOST_TEST(settings.queue == 4U);
  BOOST_TEST(settings.loss == 0.25);
}

BOOST_AUTO_TEST_CASE(directions_that_are_closed) {
  BOOST_TEST(parse_directions("").value().empty());
  const auto two = parse_directions("b:a,c:a").value();
  BOOST_REQUIRE(two.size() == 2U);
  BOOST_TEST(two[0].from == "b");
  BOOST_TEST(two[0].to == "a");
  BOOST_TEST(two[1].from == "c");
  const auto doors = parse_directions("b:a/22/7272,a:b").value();
  BOOST_TEST_REQUIRE(doors.size() == 2U);
  BOOST_TEST(doors[0].to == "a");
  BOOST_TEST(doors[0].ports == (std::vector<std::uint16_t>{22, 7272}), boost::test_tools::per_element());
  BOOST_TEST(doors[1].ports.empty());
  for (const char* const text :
       {"b", ":a", "b:", "b:a,,c:a", ":", "b:a/", "b:a/x", "b:a/22/", "b:a/65536", "b/1:a"})
    BOOST_TEST(parse_directions(text).error().text.starts_with("--closed does not understand"), text);
}

BOOST_AUTO_TEST_CASE(presets_by_name) {
  BOOST_TEST(preset("wan").value().rate == 100'000'000U);
  BOOST_TEST(preset("wan").value().delay_ns == 10'000'000);
  BOOST_TEST(preset("wann").error().text.find("internet-1994") != std::string::npos);
}

BOOST_AUTO_TEST_SUITE_END()
