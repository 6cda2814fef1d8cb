// SPDX-License-Identifier: BSD-3-Clause
#include "daemon/link/endpoint_address.hpp"

#include "daemon/link/interfaces.hpp"
#include "daemon/settings/config.hpp"

#include <boost/test/data/monomorphic.hpp>
#include <boost/test/data/test_case.hpp>
#include <boost/test/unit_test.hpp>

BOOST_AUTO_TEST_SUITE(endpoint_address)

using namespace parc::daemon; // NOLINT

BOOST_AUTO_TEST_CASE(an_address_comes_back_as_it_went) {
  for (const EndpointAddress& address :
       {EndpointAddress{
            0x5f3a09c2d7e1b846, 12, name_tag("build17"), 7272, {"10.0.0.2", "192.168.255.1", "fd00::2"}},
        EndpointAddress{1, (1ULL << 40) - 1, 0, 0, {}},
        EndpointAddress{UINT64_MAX, 1, UINT32_MAX, 65535, {"::1"}},
        EndpointAddress{5, 5, 5, 5, {"10.0.0.1", "10.0.0.2", "10.0.0.3", "10.0.0.4", "10.0.0.5", "10.0.0.6"}},
        EndpointAddress{6, 6, 6, 6, {"fd00::2", "10.0.0.2", "10.0.0.3"}},
        EndpointAddress{2, 2, 2, 2, {"127.0.0.1"}}, EndpointAddress{3, 0, 2, 2, {}}}) { // 0: the kernel
    const std::string text = to_text(address);
    BOOST_TEST(text.size() == endpoint_text);
    const auto parsed = parse_endpoint_address(text);
    BOOST_REQUIRE(parsed.has_value());
    BOOST_TEST((parsed.value() == address));
  }
}

BOOST_AUTO_TEST_CASE(what_has_no_room_is_left_out) {
  const EndpointAddress many{1, 1, 0, 7272, {"fd00::1", "10.0.0.1", "10.0.0.2", "fd00::2", "10.0.0.3"}};
  const std::vector<std::string> kept{"fd00::1", "10.0.0.1", "10.0.0.2"};
  BOOST_TEST(parse_endpoint_address(to_text(many)).value().hosts == kept);
}

BOOST_AUTO_TEST_CASE(in_words_it_can_be_read) {
  BOOST_TEST(in_words({0xabc, 12, 0, 7272, {"10.0.0.2", "fd00::2"}}) ==
             "10.0.0.2 or fd00::2, port 7272 (kernel abc)");
  BOOST_TEST(in_words({0xabc, 12, 0, 0, {"10.0.0.2"}}) == "kernel abc, which listens nowhere");
}

BOOST_AUTO_TEST_CASE(what_is_no_address) {
  const std::string good = to_text({1, 1, 0, 7272, {"10.0.0.1"}});
  const auto changed = [&](std::size_t at, char to) {
    std::string text = good;
    text[at] = to;
    return text;
  };
  const std::string last_bits = changed(62, good[62] == 'B' ? 'C' : 'B'); // behind the last byte
  for (const std::string& text :
       {std::string(), good.substr(1), good + "A", changed(5, ' '), changed(60, '='), changed(0, '_'),
        last_bits, to_text({0, 1, 0, 7272, {}})}) {
    const auto parsed = parse_endpoint_address(text);
    BOOST_REQUIRE_MESSAGE(!parsed.has_value(), text);
    BOOST_TEST(parsed.error().text.find(text) != std::string::npos);
  }
}

BOOST_AUTO_TEST_CASE(loopback_is_said_only_where_there_is_nothing_else) {
  const std::vector<std::string> loopback{"::1", "127.0.0.1"}, both{"127.0.0.1", "10.1.2.3"},
      any{"0.0.0.0", "::"};
  BOOST_TEST((reachable_at(loopback, {}) == std::vector<std::string>{"127.0.0.1", "::1"}));
  BOOST_TEST((reachable_at(both, {}) == std::vector<std::string>{"10.1.2.3"}));
  const auto all = reachable_at(any, {});
  BOOST_TEST(!all.empty());
  for (const std::string& host : all) BOOST_TEST(is_loopback(host) == is_loopback(all.front()), host);
}

BOOST_AUTO_TEST_CASE(what_other_hosts_see_is_said_first) {
  const std::vector<std::string> any{"0.0.0.0", "::"}, given{"10.1.2.3", "10.1.2.4"};
  for (const std::string& each : reachable_at(any, {}))
    BOOST_TEST(reachable_at(any, std::vector{each}).front() == each);
  BOOST_TEST((reachable_at(given, std::vector<std::string>{"10.1.2.4"}).front() == "10.1.2.4"));
}

BOOST_AUTO_TEST_SUITE_END()
