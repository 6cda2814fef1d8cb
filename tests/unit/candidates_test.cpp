// SPDX-License-Identifier: BSD-3-Clause
#include "daemon/link/candidates.hpp"

#include "daemon/link/resolver.hpp"

#include <boost/test/unit_test.hpp>

namespace parc::daemon {

BOOST_AUTO_TEST_SUITE(candidates)

namespace {

Address at(const char* host, std::uint16_t port = 7272) {
  return numeric_address(host, port).value();
}

std::string host_of(const std::optional<Address>& address) {
  return address ? address->host() : "nowhere";
}

const Loop::Time now{std::chrono::seconds(5)};

} // namespace

BOOST_AUTO_TEST_CASE(nothing_is_known_at_first) {
  const Candidates none;
  BOOST_TEST(!none.known());
  BOOST_TEST(!none.dial(0, false).has_value());
  BOOST_TEST(!none.dial(0, true).has_value());
  BOOST_TEST(!none.for_others().has_value());
  BOOST_TEST(!none.has_answered_at(at("10.0.0.1")));
  BOOST_TEST(none.name().empty());
}

// A connection that came in proves nothing of where its kernel listens.
BOOST_AUTO_TEST_CASE(a_refusal_tells_only_where_it_has_answered) {
  Candidates peer;
  peer.seen(at("10.0.0.1"));
  BOOST_TEST(!peer.has_answered_at(at("10.0.0.1")));
  BOOST_TEST(host_of(peer.dial(0, false)) == "10.0.0.1");
  peer.answered(at("10.0.0.1"), now);
  BOOST_TEST(peer.has_answered_at(at("10.0.0.1")));
  BOOST_TEST(!peer.has_answered_at(at("10.0.0.1", 7273)));
  peer.answered(at("10.0.0.2"), now);
  BOOST_TEST(!peer.has_answered_at(at("10.0.0.1")));
}

BOOST_AUTO_TEST_CASE(where_it_was_met_or_seen_last_counts) {
  Candidates peer;
  peer.answered(at("10.0.0.1"), now);
  peer.seen(at("10.0.0.2"));
  BOOST_TEST(host_of(peer.dial(0, false)) == "10.0.0.2");
  BOOST_TEST(peer.has_answered_at(at("10.0.0.1")));
  peer.answered(at("10.0.0.3"), now);
  BOOST_TEST(host_of(peer.dial(0, false)) == "10.0.0.3");
}

// Whoever calls back by a tunnel of its own must not send others there.
BOOST_AUTO_TEST_CASE(a_call_back_tells_only_where_it_answers) {
  Candidates peer;
  peer.seen(at("10.0.0.2"));
  peer.answered_back(at("127.0.0.1", 9001), now);
  BOOST_TEST(host_of(peer.for_others()) == "10.0.0.2");
  BOOST_TEST(host_of(peer.dial(0, false)) == "10.0.0.2");
  BOOST_TEST(host_of(peer.dial(0, true)) == "127.0.0.1");
  BOOST_TEST(peer.has_answered_at(at("127.0.0.1", 9001)));
  BOOST_TEST(!peer.has_answered_at(at("10.0.0.2")));
}

// It knows of a translator of addresses between; but who has reached it needs nobody's word.
BOOST_AUTO_TEST_CASE(what_it_says_goes_before_what_is_seen) {
  Candidates peer;
  peer.seen(at("10.0.0.1"));
  peer.advertised(at("192.0.2.7"));
  BOOST_TEST(host_of(peer.dial(0, false)) == "192.0.2.7");
  BOOST_TEST(host_of(peer.for_others()) == "192.0.2.7");
  peer.answered(at("10.9.0.1"), now);
  BOOST_TEST(host_of(peer.dial(0, false)) == "10.9.0.1");
  BOOST_TEST(host_of(peer.for_others()) == "192.0.2.7");
  peer.advertised(std::nullopt);
  BOOST_TEST(host_of(peer.for_others()) == "10.9.0.1");
}

BOOST_AUTO_TEST_CASE(all_places_in_turn) {
  Candidates peer;
  peer.named("b");
  peer.answered(at("10.0.0.1"), now);
  peer.resolved({at("10.0.0.2"), at("10.0.0.3")});
  BOOST_TEST(host_of(peer.dial(0, false)) == "10.0.0.2");
  BOOST_TEST(host_of(peer.dial(1, false)) == "10.0.0.3");
  BOOST_TEST(host_of(peer.dial(2, false)) == "10.0.0.1");
  BOOST_TEST(host_of(peer.dial(3, false)) == "10.0.0.2");
  peer.resolved({at("10.0.0.1")}); // the same place once
  BOOST_TEST(host_of(peer.dial(1, false)) == "10.0.0.1");
}

// [hosts] says where to look: what else is known stays out of it, but where nothing was found.
BOOST_AUTO_TEST_CASE(by_name_alone) {
  Candidates peer;
  peer.seen(at("10.0.0.1"));
  BOOST_TEST(!peer.dial(0, true).has_value());
  peer.answered(at("10.0.0.2"), now);
  BOOST_TEST(host_of(peer.dial(0, true)) == "10.0.0.2");
  peer.resolved({at("10.0.0.3")});
  for (unsigned turn = 0; turn < 4; ++turn) BOOST_TEST(host_of(peer.dial(turn, true)) == "10.0.0.3");
}

// A relay is for when nothing else leads there, and takes no other's place.
BOOST_AUTO_TEST_CASE(a_relay_comes_last) {
  const Address relay = relayed_address(9, "b");
  Candidates peer;
  peer.relayed(relay);
  BOOST_TEST((peer.dial(0, false) == relay));
  BOOST_TEST(peer.places(false).empty());
  peer.answered(at("10.0.0.1"), now);
  unsigned relayed = 0;
  for (unsigned turn = 0; turn < 24; ++turn) relayed += peer.dial(turn, false) == relay ? 1 : 0;
  BOOST_TEST(relayed == 6u);
  BOOST_TEST((peer.places(false) == std::vector{at("10.0.0.1")}));
  BOOST_TEST(host_of(peer.dial(0, false)) == "10.0.0.1");
  BOOST_TEST(!peer.has_answered_at(relay));
  BOOST_TEST(host_of(peer.for_others()) == "10.0.0.1");
}

BOOST_AUTO_TEST_SUITE_END()

} // namespace parc::daemon
