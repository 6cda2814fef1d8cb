// SPDX-License-Identifier: BSD-3-Clause
#include "daemon/link/handshake.hpp"
#include "system/identity.hpp"

#include <boost/test/unit_test.hpp>
#include <cerrno>
#include <cstring>
#include <vector>

namespace parc::daemon {

BOOST_AUTO_TEST_SUITE(handshake_exchange)

namespace {

using Bytes = std::vector<std::byte>;
using State = Handshake::State;

Key random_key() {
  Key key;
  fill_random(key);
  return key;
}

Nonce random_nonce() {
  Nonce nonce;
  fill_random(nonce);
  return nonce;
}

LocalHost host(std::string name, std::uint64_t identity) {
  LocalHost self;
  self.name = std::move(name);
  self.identity = identity;
  self.port = static_cast<std::uint16_t>(7000 + identity);
  return self;
}

Bytes take(Handshake& side) {
  const auto out = side.outgoing();
  Bytes bytes(out.begin(), out.end());
  side.sent(bytes.size());
  return bytes;
}

// Two sides and the wire between them; whatever a side cannot take yet waits, as in a socket.
struct Pair {
  Pair() = default;
  Pair(const LocalHost& a, const LocalHost& b, const Keys& key_a, const Keys& key_b,
       KeyUse use = KeyUse::link, bool early = false)
      : first(Role::Initiator, a, credentials(key_a), random_nonce(),
              {.stream_proves_key = early, .use = use}),
        second(Role::Acceptor, b, credentials(key_b), random_nonce(), {.stream_proves_key = early}) {}

  // Moves at most `step` bytes at a time until nothing moves any more.
  void run(std::size_t step = SIZE_MAX) {
    bool moved = true;
    while (moved) {
      moved = move(first, second, to_second, step);
      moved = move(second, first, to_first, step) || moved;
    }
  }
  // The same, deciding as asked where a decision is due.
  void run(Verdict by_first, Verdict by_second, std::size_t step = SIZE_MAX) {
    run(step);
    if (first.state() == State::Deciding) first.decide(by_first, 3);
    run(step);
    if (second.state() == State::Deciding) second.decide(by_second, 4);
    run(step);
    for (Handshake* side : {&first, &second})
      if (side->state() == State::Agreed) side->adopt(7);
    run(step);
  }
  static bool move(Handshake& from, Handshake& to, Bytes& wire, std::size_t step) {
    const auto out = from.outgoing().first(std::min(step, from.outgoing().size()));
    wire.insert(wire.end(), out.begin(), out.end());
    from.sent(out.size());
    const std::size_t taken = to.feed(std::span(wire).first(std::min(step, wire.size())));
    wire.erase(wire.begin(), wire.begin() + static_cast<std::ptrdiff_t>(taken));
    return !out.empty() || taken > 0;
  }

  Key key = random_key();
  Handshake first{Role::Initiator, host("a", 1), credentials(key), random_nonce()};
  Handshake second{Role::Acceptor, host("b", 2), credentials(key), random_nonce()};
  Bytes to_first, to_second;
};

bool mentions(const Handshake& side, std::string_view words) {
  return side.failure().text.find(words) != std::string::npos;
}

// What an acceptor says to these bytes in place of a hello.
int failure_after(const Bytes& bytes) {
  Handshake acceptor(Role::Acceptor, host("b", 2), credentials(random_key()), random_nonce());
  const auto taken = acceptor.feed(bytes);
  BOOST_TEST(taken <= bytes.size());
  BOOST_TEST((acceptor.state() == State::Failed || acceptor.state() == State::Exchanging));
  return acceptor.state() == State::Failed ? acceptor.failure().code : 0;
}

// The hello of host a as it stands on the wire, to be spoiled.
Bytes hello_frame() {
  Handshake side(Role::Initiator, host("a", 1), credentials(random_key()), random_nonce());
  return take(side);
}

template <class T> Bytes with(Bytes frame, std::size_t offset, T value) {
  std::memcpy(frame.data() + offset, &value, sizeof value);
  return frame;
}

constexpr std::size_t hello_at = sizeof(handshake::Prefix);

} // namespace

// While keys are being changed, whoever dials says which of two it means.
BOOST_AUTO_TEST_CASE(the_initiator_names_the_key) {
  const Key old = random_key(), fresh = random_key();
  for (const Keys& of_acceptor : {Keys(old, fresh), Keys(fresh, old), Keys(fresh)}) {
    Pair pair(host("a", 1), host("b", 2), Keys(fresh, old), of_acceptor);
    pair.run(Verdict::Accepted, Verdict::Accepted);
    BOOST_TEST((pair.second.state() == State::Established));
    BOOST_TEST((pair.second.key() == fresh));
  }
  Pair late(host("a", 1), host("b", 2), Keys(fresh, old), old); // in the wrong order
  late.run(Verdict::Accepted, Verdict::Accepted);
  BOOST_TEST(late.first.failure().code == EKEYREJECTED);
}

// A kernel that only relays has no other key, and whoever has one dials it with what is derived from that.
BOOST_AUTO_TEST_CASE(a_relay_proves_a_key_of_its_own) {
  const Keys all = random_key(), relay = relay_keys(all);
  const auto use_of = [](const Keys& first, const Keys& second, KeyUse use) -> std::optional<KeyUse> {
    Pair pair(host("a", 1), host("b", 2), first, second, use);
    pair.run(Verdict::Accepted, Verdict::Accepted);
    if (pair.first.state() != State::Established) {
      BOOST_TEST(pair.first.failure().code == EKEYREJECTED);
      BOOST_TEST((pair.second.state() != State::Established));
      return {};
    }
    BOOST_TEST((pair.first.use() == pair.second.use()));
    return pair.first.use();
  };
  BOOST_TEST((use_of(all, all, KeyUse::link) == KeyUse::link));
  BOOST_TEST((use_of(all, all, KeyUse::relay) == KeyUse::relay));
  BOOST_TEST((use_of(all, relay, KeyUse::relay) == KeyUse::relay));
  BOOST_TEST((use_of(relay, all, KeyUse::link) == KeyUse::relay));
  BOOST_TEST((use_of(relay, relay, KeyUse::link) == KeyUse::relay));
  BOOST_TEST(!use_of(all, relay, KeyUse::link).has_value());
  BOOST_TEST(!use_of(relay, relay_keys(random_key()), KeyUse::relay).has_value());
}

BOOST_AUTO_TEST_CASE(both_learn_who_the_other_is) {
  auto a = host("alpha", 11);
  auto b = host("beta.example", 22);
  a.fragment_size = 8192, b.fragment_size = 4096;
  a.window = 10, b.window = 20;
  const Key key = random_key();
  Pair pair(a, b, key, key);
  pair.run(Verdict::Accepted, Verdict::Accepted);
  BOOST_TEST((pair.first.state() == State::Established));
  BOOST_TEST((pair.second.state() == State::Established));
  BOOST_TEST(pair.first.peer().name == "beta.example");
  BOOST_TEST(pair.first.peer().identity == 22U);
  BOOST_TEST(pair.first.peer().port == 7022);
  BOOST_TEST(pair.second.peer().name == "alpha");
  BOOST_TEST(pair.second.peer().identity == 11U);
  for (const auto* side : {&pair.first, &pair.second}) {
    BOOST_TEST(side->peer().fragment_size == 4096U);
    BOOST_TEST(side->peer().window == 10U);
  }
}

BOOST_AUTO_TEST_CASE(any_split_of_the_stream_is_the_same) {
  for (const std::size_t step : {1U, 2U, 7U, 11U, 12U, 13U, 100U}) {
    Pair pair;
    pair.run(Verdict::Accepted, Verdict::Accepted, step);
    BOOST_TEST((pair.first.state() == State::Established));
    BOOST_TEST((pair.second.state() == State::Established));
  }
}

// Whoever has the smaller identity, and whoever dialed.
BOOST_AUTO_TEST_CASE(the_smaller_identity_says_which_carrier_it_is) {
  for (const std::uint64_t initiator : {1u, 3u}) {
    const Key key = random_key();
    Pair pair(host("a", initiator), host("b", 2), key, key);
    pair.run();
    pair.first.decide(Verdict::Accepted, 5);
    pair.run();
    pair.second.decide(Verdict::Accepted, 6);
    pair.run();
    Handshake& smaller = initiator < 2 ? pair.first : pair.second;
    Handshake& larger = initiator < 2 ? pair.second : pair.first;
    BOOST_TEST((smaller.state() == State::Agreed));
    BOOST_TEST((larger.state() == State::Exchanging));
    smaller.adopt(9);
    pair.run();
    BOOST_TEST((larger.state() == State::Established));
    BOOST_TEST((smaller.carrier() == 9u && larger.carrier() == 9u));
    BOOST_TEST((pair.first.session() == 5u && pair.first.peer().session == 6u));
    BOOST_TEST((pair.second.session() == 6u && pair.second.peer().session == 5u));
  }
}

// Each side says all that it can at once: of three trips one way the first comes with the greeting of the
// stream below.
BOOST_AUTO_TEST_CASE(behind_a_stream_that_proves_the_key_a_round_trip_is_enough) {
  for (const std::uint64_t initiator : {1u, 3u}) {
    const Key key = random_key();
    Pair pair(host("a", initiator), host("b", 2), key, key, KeyUse::link, true);
    Handshake &first = pair.first, &second = pair.second;
    const Bytes greeting = take(second);
    BOOST_TEST(first.feed(greeting) == greeting.size());
    BOOST_TEST((first.state() == State::Deciding && first.proved() && first.peer().identity == 2u));
    first.decide(Verdict::Accepted, 3);
    const Bytes said = take(first);
    BOOST_TEST(second.feed(said) == said.size());
    BOOST_TEST((second.state() == State::Deciding));
    second.decide(Verdict::Accepted, 4);
    if (second.state() == State::Agreed) second.adopt(7);
    const Bytes answer = take(second);
    BOOST_TEST(first.feed(answer) == answer.size());
    BOOST_TEST((first.state() == (initiator < 2 ? State::Agreed : State::Established)));
    BOOST_TEST((first.session() == 3u && second.peer().session == 3u && first.peer().session == 4u));
  }
}

// That the stream is right does not do: who has ended it in between has no proof.
BOOST_AUTO_TEST_CASE(behind_such_a_stream_both_prove_the_key_all_the_same) {
  Pair wrong(host("a", 1), host("b", 2), random_key(), random_key(), KeyUse::link, true);
  wrong.run(Verdict::Accepted, Verdict::Accepted);
  BOOST_TEST(wrong.second.failure().code == EKEYREJECTED);
  BOOST_TEST(wrong.second.outgoing().empty());
  const Key key = random_key();
  Pair bound(host("a", 1), host("b", 2), key, key, KeyUse::link, true);
  bound.first.bind({std::byte{1}});
  bound.second.bind({std::byte{2}});
  bound.run(Verdict::Accepted, Verdict::Accepted);
  BOOST_TEST(bound.second.failure().code == EKEYREJECTED);
  Pair refused(host("a", 1), host("b", 2), key, key, KeyUse::link, true);
  refused.run(Verdict::Duplicate, Verdict::Accepted);
  BOOST_TEST((refused.first.state() == State::Failed && refused.second.verdict() == Verdict::Duplicate));
  Pair forged(host("a", 1), host("b", 2), key, key, KeyUse::link, true);
  (void)forged.first.feed(take(forged.second));
  forged.first.decide(Verdict::Accepted, 1);
  (void)forged.first.feed(
      with(Bytes(hello_at + 32), 0,
           handshake::Prefix{handshake::magic, protocol::wire_version, handshake::Kind::Proof, 0, 32}));
  BOOST_TEST(forged.first.failure().code == EKEYREJECTED);
}

BOOST_AUTO_TEST_CASE(the_first_byte_of_the_carrier_stays_with_the_caller) {
  const Key key = random_key();
  Pair pair(host("a", 3), host("b", 2), key, key);
  pair.run();
  pair.first.decide(Verdict::Accepted, 1);
  pair.run();
  pair.second.decide(Verdict::Accepted, 1);
  pair.second.adopt(1);
  Bytes stream = take(pair.second);
  const std::size_t handshake_end = stream.size();
  stream.resize(handshake_end + 100, std::byte{'P'});
  BOOST_TEST(pair.first.feed(stream) == handshake_end);
  BOOST_TEST((pair.first.state() == State::Established));
  BOOST_TEST(pair.first.feed(stream) == 0U);
}

BOOST_AUTO_TEST_CASE(nothing_is_taken_while_a_decision_is_due) {
  Pair pair;
  pair.run();
  BOOST_TEST((pair.first.state() == State::Deciding));
  BOOST_TEST((pair.second.state() == State::Exchanging));
  BOOST_TEST(pair.first.feed(Bytes(10)) == 0U);
  BOOST_TEST(pair.first.outgoing().empty());
}

BOOST_AUTO_TEST_CASE(a_wrong_key_is_refused_without_a_word) {
  Pair pair(host("a", 1), host("b", 2), random_key(), random_key());
  pair.run();
  BOOST_TEST((pair.first.state() == State::Failed));
  BOOST_TEST(pair.first.failure().code == EKEYREJECTED);
  BOOST_TEST(mentions(pair.first, "calls itself b"));
  BOOST_TEST(pair.first.outgoing().empty());
  pair.second.closed();
  BOOST_TEST(mentions(pair.second, "a different key"));
}

BOOST_AUTO_TEST_CASE(an_acceptor_checks_the_key_too) {
  Pair pair;
  Bytes hello = take(pair.first);
  BOOST_REQUIRE(pair.second.feed(hello) == hello.size());
  (void)take(pair.second);
  Bytes forged =
      with(Bytes(hello_at + 32), 0,
           handshake::Prefix{handshake::magic, protocol::wire_version, handshake::Kind::Proof, 0, 32});
  BOOST_TEST(pair.second.feed(forged) == forged.size());
  BOOST_TEST(pair.second.failure().code == EKEYREJECTED);
  BOOST_TEST(pair.second.outgoing().empty());
}

BOOST_AUTO_TEST_CASE(nothing_in_a_hello_can_be_changed_on_the_way) {
  // Every byte of the body in turn, in both directions; where the change itself is not refused, the proof is.
  for (std::size_t at = hello_at; at < hello_frame().size(); ++at) {
    for (const bool forward : {true, false}) {
      Pair pair;
      Bytes hello = take(pair.first);
      if (forward) hello[at] ^= std::byte{8};
      (void)pair.second.feed(hello);
      Bytes answer = take(pair.second);
      if (!forward) answer[at] ^= std::byte{8};
      (void)pair.first.feed(answer);
      const bool refused = pair.first.state() == State::Failed || pair.second.state() == State::Failed;
      BOOST_TEST(refused, "byte " << at);
    }
  }
}

BOOST_AUTO_TEST_CASE(a_reflected_hello_or_proof_is_refused) {
  // The attacker has no key and sends everything back to where it came from.
  const Key key = random_key();
  Handshake victim(Role::Initiator, host("a", 1), credentials(key), random_nonce());
  (void)victim.feed(take(victim));
  BOOST_TEST((victim.state() == State::Failed));
  BOOST_TEST(mentions(victim, "role"));

  // The same with the role put right, and with the proof that a second connection to the victim makes.
  Handshake initiator(Role::Initiator, host("a", 1), credentials(key), random_nonce());
  Bytes hello = take(initiator);
  Handshake acceptor(Role::Acceptor, host("a", 1), credentials(key), random_nonce());
  (void)acceptor.feed(hello);
  const Bytes answer = take(acceptor); // hello and proof of the acceptor
  Bytes reflected = with(hello, hello_at + offsetof(handshake::Hello, role), Role::Acceptor);
  reflected.insert(reflected.end(), answer.begin() + static_cast<std::ptrdiff_t>(hello.size()), answer.end());
  (void)initiator.feed(reflected);
  BOOST_TEST(initiator.failure().code == EKEYREJECTED);

  // A proof sent back to the acceptor that made it.
  Bytes proof(answer.begin() + static_cast<std::ptrdiff_t>(hello.size()), answer.end());
  (void)acceptor.feed(proof);
  BOOST_TEST(acceptor.failure().code == EKEYREJECTED);
}

BOOST_AUTO_TEST_CASE(a_replayed_exchange_is_refused) {
  const Key key = random_key();
  Handshake first(Role::Initiator, host("a", 1), credentials(key), random_nonce());
  Handshake second(Role::Acceptor, host("b", 2), credentials(key), random_nonce());
  const Bytes hello = take(first);
  (void)second.feed(hello);
  (void)first.feed(take(second));
  first.decide(Verdict::Accepted, 1);
  const Bytes proof = take(first);

  Handshake again(Role::Acceptor, host("b", 2), credentials(key), random_nonce());
  (void)again.feed(hello);
  (void)again.feed(proof);
  BOOST_TEST(again.failure().code == EKEYREJECTED);
}

BOOST_AUTO_TEST_CASE(versions_that_differ_are_both_named) {
  auto newer = host("b", 2);
  newer.wire_version = protocol::wire_version + 1;
  for (const bool newer_accepts : {true, false}) {
    const Key key = random_key();
    const auto older = host("a", 1);
    Pair pair(newer_accepts ? older : newer, newer_accepts ? newer : older, key, key);
    pair.run();
    for (const auto* side : {&pair.first, &pair.second}) {
      BOOST_TEST((side->state() == State::Failed));
      BOOST_TEST(side->failure().code == EPROTONOSUPPORT);
      BOOST_TEST(
          mentions(*side, fmt::format("version {}", protocol::wire_version + (newer_accepts ? 1 : 0))));
      BOOST_TEST(mentions(
          *side, newer_accepts
                     ? fmt::format("the other side {}; upgrade the latter", protocol::wire_version)
                     : fmt::format("the other side {}; upgrade the former", protocol::wire_version + 1)));
    }
  }
}

BOOST_AUTO_TEST_CASE(garbage_is_refused_at_once) {
  const std::string_view http = "GET / HTTP/1.1\r\n\r\n";
  const auto text = std::as_bytes(std::span(http));
  BOOST_TEST(failure_after(Bytes(text.begin(), text.end())) == EPROTO);
  BOOST_TEST(failure_after(Bytes(1, std::byte{'G'})) == EPROTO);
  BOOST_TEST(failure_after(Bytes(1, std::byte{'P'})) == 0);
  Handshake acceptor(Role::Acceptor, host("b", 2), credentials(random_key()), random_nonce());
  (void)acceptor.feed(text);
  BOOST_TEST(acceptor.outgoing().empty());
}

BOOST_AUTO_TEST_CASE(random_bytes_never_establish_a_link) {
  for (std::size_t round = 0; round < 2000; ++round) {
    const Bytes frame = hello_frame();
    Bytes noise(2 * frame.size());
    fill_random(noise);
    const std::size_t right = round % (hello_at + 20); // so far as in a hello that is right
    std::copy_n(frame.begin(), right, noise.begin());
    Handshake acceptor(Role::Acceptor, host("b", 2), credentials(random_key()), random_nonce());
    (void)acceptor.feed(noise);
    BOOST_TEST((acceptor.state() == State::Failed || acceptor.state() == State::Exchanging));
  }
}

BOOST_AUTO_TEST_CASE(lengths_are_checked_before_anything_is_read) {
  using handshake::Hello;
  const Bytes hello = hello_frame();
  const std::size_t length_at = offsetof(handshake::Prefix, length);
  constexpr std::uint32_t right = sizeof(Hello);
  for (const std::uint32_t length : {0U, right - 1, right + 1, 0x7fffffffU, 0xffffffffU})
    BOOST_TEST(failure_after(with(Bytes(hello.begin(), hello.begin() + hello_at), length_at, length)) ==
               EPROTO);
  BOOST_TEST(failure_after(with(hello, hello_at + offsetof(Hello, name_length), std::uint8_t{65})) == EPROTO);
  BOOST_TEST(failure_after(with(hello, hello_at + offsetof(Hello, name_length), std::uint8_t{0})) == EPROTO);
  BOOST_TEST(failure_after(with(hello, hello_at + offsetof(Hello, name), '\n')) == EPROTO);
  for (const std::uint32_t fragment : {0U, 1016U, 4097U, 65544U})
    BOOST_TEST(failure_after(with(hello, hello_at + offsetof(Hello, fragment_size), fragment)) == EPROTO);
  BOOST_TEST(failure_after(with(hello, hello_at + offsetof(Hello, window), 0U)) == EPROTO);
  BOOST_TEST(failure_after(hello) == 0);
}

BOOST_AUTO_TEST_CASE(refusals_are_bounded_and_harmless) {
  const auto refusal = [](std::uint32_t length, std::string_view text) {
    Bytes frame = with(Bytes(hello_at), 0,
                       handshake::Prefix{handshake::magic, 99, handshake::Kind::Refusal, 0, length});
    for (const char c : text) frame.push_back(static_cast<std::byte>(c));
    return frame;
  };
  BOOST_TEST(failure_after(refusal(513, "")) == EPROTO);
  BOOST_TEST(failure_after(refusal(0, "")) == EPROTO);
  Handshake initiator(Role::Initiator, host("a", 1), credentials(random_key()), random_nonce());
  (void)initiator.feed(refusal(6, "no\x1b[2J"));
  BOOST_TEST(initiator.failure().text == "refused by the kernel there: no?[2J");
}

BOOST_AUTO_TEST_CASE(frames_out_of_order_are_refused) {
  Pair pair;
  const Bytes hello = take(pair.first);
  (void)pair.second.feed(hello);
  (void)pair.second.feed(hello);
  BOOST_TEST(pair.second.failure().code == EPROTO);
}

BOOST_AUTO_TEST_CASE(verdicts_reach_the_other_side) {
  for (const auto verdict : {Verdict::Duplicate, Verdict::Itself, Verdict::Leaving, Verdict::Full}) {
    Pair by_first;
    by_first.run(verdict, Verdict::Accepted);
    Pair by_second;
    by_second.run(Verdict::Accepted, verdict);
    for (const auto* side : {&by_first.first, &by_first.second, &by_second.first, &by_second.second}) {
      BOOST_TEST((side->state() == State::Failed));
      BOOST_TEST((side->verdict() == verdict));
      BOOST_TEST(mentions(*side, describe(verdict)));
    }
  }
}

BOOST_AUTO_TEST_CASE(an_end_in_the_middle_is_told) {
  Pair pair;
  pair.second.closed();
  BOOST_TEST(mentions(pair.second, "before the other side said who it is"));
  Pair done;
  done.run(Verdict::Accepted, Verdict::Accepted);
  done.first.closed();
  BOOST_TEST((done.first.state() == State::Established));
}

BOOST_AUTO_TEST_SUITE_END()

} // namespace parc::daemon
