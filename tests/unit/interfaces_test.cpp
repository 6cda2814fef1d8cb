// SPDX-License-Identifier: BSD-3-Clause
// What is to be listened on, on this machine's loopback interface, which all have.
#include "daemon/link/interfaces.hpp"

#include <algorithm>
#include <boost/test/unit_test.hpp>
#include <cerrno>

namespace parc::daemon {

BOOST_AUTO_TEST_SUITE(interfaces)

namespace {

using Texts = std::vector<std::string>;

Texts found(const Texts& places) {
  const auto addresses = addresses_of(places);
  BOOST_TEST_REQUIRE(addresses.has_value(), (addresses ? "" : addresses.error().text));
  return addresses.value();
}

} // namespace

BOOST_AUTO_TEST_CASE(addresses_networks_and_interfaces) {
  BOOST_TEST((found({"0.0.0.0", "::1", "0.0.0.0"}) == Texts{"0.0.0.0", "::1"}));
  BOOST_TEST(std::ranges::count(found({"lo"}), "127.0.0.1") == 1);
  BOOST_TEST(found({"127.0.0.0/8"}).front() == "127.0.0.1");
  BOOST_TEST((found({"127.0.0.1/32", "127.0.0.0/31"}) == Texts{"127.0.0.1"}));
  for (const char* none : {"nowhere", "127.0.0.2/32"}) {
    const auto addresses = addresses_of(Texts{none});
    BOOST_TEST(addresses.error().code == ENODEV, none);
    BOOST_TEST(addresses.error().text.find(none) != std::string::npos, none);
    BOOST_TEST((found({none, "127.0.0.1"}) == Texts{"127.0.0.1"})); // one text for several hosts
  }
}

BOOST_AUTO_TEST_SUITE_END()

} // namespace parc::daemon
