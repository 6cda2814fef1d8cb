// SPDX-License-Identifier: BSD-3-Clause
#include "daemon/link/host_directory.hpp"

#include "daemon/link/endpoint_address.hpp"

#include <boost/test/unit_test.hpp>

namespace parc::daemon {
namespace {

struct KnownHosts {
  KnownHosts() {
    config.name = "a";
    config.hosts["b"] = {"10.0.0.2", 7300};
  }
  Config config;
  HostDirectory directory{config};
};

} // namespace

BOOST_FIXTURE_TEST_SUITE(host_directory, KnownHosts)

BOOST_AUTO_TEST_CASE(a_name_that_nobody_knows_is_its_own_address) {
  BOOST_TEST(directory.address_of("z").address == "z");
  BOOST_TEST(directory.address_of("z").port == default_port);
  BOOST_TEST(directory.address_of("b").address == "10.0.0.2");
  BOOST_TEST(directory.address_of("b").port == 7300);
}

// One text of [hosts] serves the relay and both sides of it.
BOOST_AUTO_TEST_CASE(hosts_that_another_one_leads_to) {
  for (const char* const host : {"n1", "n2"})
    config.hosts[host] = {.address = host, .via = {.relay = "head", .host = host}};
  const auto relay_at = [this](const std::string& name) {
    config.name = name;
    return directory.address_of("n1").via.relay;
  };
  BOOST_TEST(relay_at("a") == "head");
  BOOST_TEST(relay_at("b") == "head");
  BOOST_TEST(relay_at("head") == "");
  BOOST_TEST(relay_at("n2") == "");
}

// Each is a host's own: one text serves all.
BOOST_AUTO_TEST_CASE(who_dials_whom) {
  config.hosts["out"] = {.address = "10.0.0.3", .dials = Dials::out};
  config.hosts["in"] = {.address = "10.0.0.4", .dials = Dials::in};
  BOOST_TEST(directory.may_dial("b"));
  BOOST_TEST(directory.may_dial("stranger"));
  BOOST_TEST(!directory.may_dial("out"));
  BOOST_TEST(directory.may_dial("in"));
  BOOST_TEST(directory.is_undecided("b"));
  BOOST_TEST(!directory.is_undecided("out")); // who dials and calls itself so is meant
  config.name = "out";
  BOOST_TEST(directory.may_dial("in"));
  config.name = "in";
  for (const char* const host : {"b", "stranger", "out"}) BOOST_TEST(!directory.may_dial(host));
}

BOOST_AUTO_TEST_CASE(this_host) {
  BOOST_TEST(directory.is_this_host("a"));
  BOOST_TEST(directory.is_this_host("localhost"));
  BOOST_TEST(!directory.is_this_host("b"));
}

// It may be another kernel under that name.
BOOST_AUTO_TEST_CASE(what_is_found_out_counts_until_the_settings_are_read_again) {
  directory.answered("c", 7);
  BOOST_TEST(directory.identity_of("c").value() == 7U);
  BOOST_TEST(!directory.is_undecided("c"));
  BOOST_TEST(directory.learn("c", {"10.0.0.3", 7400}));
  BOOST_TEST(!directory.identity_of("c").has_value());
  BOOST_TEST(directory.is_undecided("c"));
  BOOST_TEST(directory.address_of("c").address == "10.0.0.3");
  directory.answered("c", 8);
  BOOST_TEST(!directory.is_undecided("c"));
  BOOST_TEST(directory.learned_names().at(8).front() == "c");
  directory.forget();
  BOOST_TEST(directory.address_of("c").address == "c");
  BOOST_TEST(!directory.identity_of("c").has_value());
  BOOST_TEST(directory.learned_names().empty());
}

BOOST_AUTO_TEST_CASE(names_of_the_settings) {
  BOOST_TEST(directory.is_undecided("b"));
  BOOST_TEST(directory.configured_as(name_tag("b")).value() == "b");
  BOOST_TEST(!directory.configured_as(name_tag("c")).has_value());
  directory.learn("c", {"10.0.0.3", 7272});
  BOOST_TEST(!directory.configured_as(name_tag("c")).has_value());
  const std::vector<std::string> all{"a", "b", "c"};
  BOOST_TEST(directory.names() == all, boost::test_tools::per_element());
}

BOOST_AUTO_TEST_CASE(there_is_an_end_to_what_is_learned) {
  std::size_t learned = 0;
  while (directory.learn("host" + std::to_string(learned), {"10.0.0.3", 7272})) ++learned;
  BOOST_TEST(learned == 4096U);
  BOOST_TEST(directory.learn("host0", {"10.0.0.4", 7272})); // known before
  BOOST_TEST(directory.address_of("host0").address == "10.0.0.4");
}

BOOST_AUTO_TEST_SUITE_END()

} // namespace parc::daemon
