// SPDX-License-Identifier: BSD-3-Clause
#include "daemon/program/endpoint_address.hpp"

#include <boost/test/data/monomorphic.hpp>
#include <boost/test/data/test_case.hpp>
#include <boost/test/unit_test.hpp>

using namespace parc::daemon; // NOLINT

BOOST_AUTO_TEST_SUITE(endpoint_address)

BOOST_AUTO_TEST_CASE(an_address_comes_back_as_it_went) {
  for (const EndpointAddress& address :
       {EndpointAddress{"build17", 7272, 0x5f3a09c2d7e1b846, 12}, EndpointAddress{"a", 0, 1, UINT64_MAX},
        EndpointAddress{"::1", 65535, UINT64_MAX, 1}}) {
    const auto parsed = parse_endpoint_address(to_text(address));
    BOOST_REQUIRE(parsed.has_value());
    BOOST_TEST((parsed.value() == address));
  }
  BOOST_TEST(to_text({"build17", 7272, 0xabc, 12}) == "build17:7272/abc/12");
}

BOOST_DATA_TEST_CASE(what_is_no_address,
                     boost::unit_test::data::make({"",
                                                   "a",
                                                   "/",
                                                   "//",
                                                   "a/1",
                                                   "a/1/",
                                                   "a//1",
                                                   "/1/1",
                                                   "a/g/1",
                                                   "a/1/x",
                                                   "a/1/0",
                                                   "a:/1/1",
                                                   "a:0/1/1",
                                                   "a:65536/1/1",
                                                   "a:b/1/1",
                                                   "a b/1/1",
                                                   "a/1/1/1",
                                                   "a/10000000000000000/1",
                                                   "a/1/18446744073709551616",
                                                   "a/1/-1",
                                                   "a/1/1 "}),
                     text) {
  const auto parsed = parse_endpoint_address(text);
  BOOST_REQUIRE(!parsed.has_value());
  BOOST_TEST(parsed.error().text.find(text) != std::string::npos);
}

BOOST_AUTO_TEST_SUITE_END()
