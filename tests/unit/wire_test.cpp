// SPDX-License-Identifier: BSD-3-Clause
#include "protocol/wire.hpp"

#include "tests/unit/engine_test.hpp"

#include <boost/test/unit_test.hpp>
#include <cstring>
#include <random>
#include <vector>

BOOST_TEST_DONT_PRINT_LOG_VALUE(parc::protocol::Kind)

BOOST_AUTO_TEST_SUITE(wire)

using namespace parc::protocol;

namespace {

Prefix good_prefix() {
  Prefix prefix{};
  prefix.magic = train_magic;
  prefix.header_length = sizeof(Prefix) + sizeof(Descriptor);
  prefix.entries = 1;
  prefix.sequence = 1;
  prefix.payload_length = 100;
  return prefix;
}

template <class T> void append(std::vector<std::byte>& bytes, const T& value, std::size_t riding = 0) {
  const auto* at = reinterpret_cast<const std::byte*>(&value);
  bytes.insert(bytes.end(), at, at + sizeof value);
  bytes.resize(bytes.size() + riding);
}

Refusal walk(const std::vector<std::byte>& bytes, std::uint16_t count) {
  EntryWalk walk(bytes, count);
  while (walk.next() != nullptr) {
  }
  return walk.refusal();
}

Envelope good_envelope() {
  Envelope envelope{};
  envelope.kind = Kind::envelope;
  envelope.length = 10;
  return envelope;
}

Refusal walk(const Envelope& envelope, std::size_t riding = 0) {
  std::vector<std::byte> bytes;
  append(bytes, envelope, riding);
  return walk(bytes, 1);
}

} // namespace

BOOST_AUTO_TEST_CASE(prefixes_are_checked_field_by_field) {
  const auto check = [](auto change) {
    Prefix prefix = good_prefix();
    change(prefix);
    return check_prefix(prefix);
  };
  BOOST_TEST(check([](Prefix&) {}) == Refusal::none);
  BOOST_TEST(check([](Prefix& p) { p.magic ^= 1; }) == Refusal::magic);
  BOOST_TEST(check([](Prefix& p) { p.header_length = sizeof(Prefix) - 1; }) == Refusal::length);
  BOOST_TEST(check([](Prefix& p) { p.header_length = max_header + 1; }) == Refusal::length);
  BOOST_TEST(check([](Prefix& p) { p.entries = max_entries + 1; }) == Refusal::length);
  BOOST_TEST(check([](Prefix& p) { p.payload_length = max_payload + 1; }) == Refusal::length);
  BOOST_TEST(check([](Prefix& p) { p.entries = 0; }) == Refusal::length);
  BOOST_TEST(check([](Prefix& p) { p.sequence = 0; }) == Refusal::sequence);
  BOOST_TEST(check([](Prefix& p) { p.flags = flag_acknowledge | flag_retired; }) == Refusal::none);
  BOOST_TEST(check([](Prefix& p) { p.flags = 4; }) == Refusal::kind);
  BOOST_TEST(check([](Prefix& p) {
               p.header_length = sizeof(Prefix);
               p.entries = 0;
               p.sequence = 0;
               p.payload_length = 0;
               p.flags = flag_acknowledge;
             }) == Refusal::kind);
  BOOST_TEST(check([](Prefix& p) {
               p.header_length = sizeof(Prefix);
               p.entries = 0;
               p.sequence = 0;
               p.payload_length = 0;
             }) == Refusal::none);
}

BOOST_AUTO_TEST_CASE(envelopes_must_not_contradict_themselves) {
  const auto check = [](auto change, std::size_t riding = 0) {
    Envelope envelope = good_envelope();
    change(envelope);
    return walk(envelope, riding);
  };
  BOOST_TEST(check([](Envelope&) {}) == Refusal::none);
  BOOST_TEST(check([](Envelope& e) { e.length = max_message + 1; }) == Refusal::envelope);
  BOOST_TEST(check([](Envelope& e) { e.eager = 11; }) == Refusal::envelope);
  BOOST_TEST(check([](Envelope& e) { e.eager = 10; }) == Refusal::envelope); // all of it, but not whole
  BOOST_TEST(check([](Envelope& e) { e.flags = MessageFlags::whole; }) == Refusal::envelope);
  BOOST_TEST(check([](Envelope& e) { e.eager = 10, e.flags = MessageFlags::whole; }) == Refusal::none);
  BOOST_TEST(check([](Envelope& e) { e.length = 0; }) == Refusal::none);
  BOOST_TEST(check([](Envelope& e) { e.length = 0, e.flags = MessageFlags::whole; }) == Refusal::none);
  BOOST_TEST(check([](Envelope& e) { e.space = static_cast<Space>(4); }) == Refusal::envelope);
  BOOST_TEST(check([](Envelope& e) { e.flags = MessageFlags::synchronous; }) == Refusal::none);
  const auto rides = [](Envelope& e) { e.eager = 10, e.flags = MessageFlags::whole, e.inline_length = 10; };
  BOOST_TEST(check(rides, 16) == Refusal::none);
  BOOST_TEST(check(rides, 8) == Refusal::length);
  BOOST_TEST(check(rides, 24) == Refusal::length); // bytes behind the last entry
  BOOST_TEST(check([](Envelope& e) { e.eager = 10, e.flags = MessageFlags::whole, e.inline_length = 9; },
                   16) == Refusal::envelope);
  BOOST_TEST(check([](Envelope& e) { e.inline_length = max_inline + 1; }, 200) == Refusal::length);
}

// It is an envelope that nothing comes with.
BOOST_AUTO_TEST_CASE(gets_that_contradict_themselves_are_refused) {
  const auto get = [](auto change) {
    Envelope envelope = good_envelope();
    envelope.kind = Kind::get;
    change(envelope);
    return walk(envelope);
  };
  BOOST_TEST(get([](Envelope& e) { e.length = max_message; }) == Refusal::none);
  BOOST_TEST(get([](Envelope& e) { e.length = 0; }) == Refusal::none);
  BOOST_TEST(get([](Envelope& e) { e.data = ~std::uint64_t{0}; }) == Refusal::none);
  BOOST_TEST(get([](Envelope& e) { e.flags = MessageFlags::from_end; }) == Refusal::none);
  BOOST_TEST(get([](Envelope& e) { e.length = max_message + 1; }) == Refusal::envelope);
  BOOST_TEST(get([](Envelope& e) { e.eager = 1; }) == Refusal::envelope);
  BOOST_TEST(get([](Envelope& e) { e.space = Space::barriers; }) == Refusal::envelope);
  BOOST_TEST(get([](Envelope& e) { e.flags = MessageFlags::synchronous; }) == Refusal::envelope);
  BOOST_TEST(get([](Envelope& e) { e.length = 0, e.flags = MessageFlags::whole; }) == Refusal::envelope);
}

BOOST_AUTO_TEST_CASE(puts_that_contradict_themselves_are_refused) {
  const auto put = [](auto change) {
    Envelope envelope = good_envelope();
    envelope.kind = Kind::put;
    envelope.flags = MessageFlags::synchronous;
    change(envelope);
    return walk(envelope);
  };
  BOOST_TEST(put([](Envelope& e) { e.length = max_message; }) == Refusal::none);
  BOOST_TEST(put([](Envelope& e) { e.length = e.eager = 0, e.flags |= MessageFlags::whole; }) ==
             Refusal::none);
  BOOST_TEST(put([](Envelope& e) { e.data = ~std::uint64_t{0}; }) == Refusal::none);
  BOOST_TEST(put([](Envelope& e) { e.flags |= MessageFlags::from_end; }) == Refusal::none);
  BOOST_TEST(put([](Envelope& e) { e.length = max_message + 1; }) == Refusal::envelope);
  BOOST_TEST(put([](Envelope& e) { e.space = Space::barriers; }) == Refusal::envelope);
  BOOST_TEST(put([](Envelope& e) { e.flags = MessageFlags::none; }) == Refusal::envelope);
  BOOST_TEST(put([](Envelope& e) { e.flags |= MessageFlags::with_data; }) == Refusal::envelope);
}

BOOST_AUTO_TEST_CASE(rows_that_contradict_themselves_are_refused) {
  const auto with = [](Kind kind, std::uint64_t length, const Rows& rows, std::size_t riding = 0) {
    Envelope envelope = good_envelope();
    envelope.kind = kind;
    envelope.flags = MessageFlags::rows | when(kind == Kind::put, MessageFlags::synchronous);
    envelope.length = length;
    if (riding != 0) {
      envelope.flags |= MessageFlags::whole;
      envelope.eager = envelope.inline_length = static_cast<std::uint16_t>(length);
    }
    std::vector<std::byte> bytes;
    append(bytes, envelope);
    append(bytes, rows, riding);
    return walk(bytes, 1);
  };
  for (const Kind kind : {Kind::get, Kind::put}) {
    BOOST_TEST(with(kind, 10, {5, 7}) == Refusal::none);
    BOOST_TEST(with(kind, 10, {10, INT64_MIN}) == Refusal::none);
    BOOST_TEST(with(kind, max_message, {1, 0}) == Refusal::none);
    BOOST_TEST(with(kind, 10, {3, 7}) == Refusal::envelope);
    BOOST_TEST(with(kind, 10, {11, 7}) == Refusal::envelope);
    BOOST_TEST(with(kind, 10, {0, 7}) == Refusal::envelope);
    BOOST_TEST(with(kind, 0, {1, 7}) == Refusal::envelope);
  }
  BOOST_TEST(with(Kind::put, 10, {5, 7}, 16) == Refusal::none);
  BOOST_TEST(with(Kind::put, 10, {5, 7}, 8) == Refusal::length);
  BOOST_TEST(with(Kind::get, 10, {5, 7}, 16) == Refusal::envelope);
  BOOST_TEST(with(Kind::envelope, 10, {5, 7}) == Refusal::envelope);
  Envelope cut = good_envelope();
  cut.kind = Kind::get;
  cut.flags = MessageFlags::rows;
  BOOST_TEST(walk(cut) == Refusal::length);
}

BOOST_AUTO_TEST_CASE(atomics_that_contradict_themselves_are_refused) {
  const auto atomic = [](auto change) {
    Envelope envelope = good_envelope();
    envelope.kind = Kind::atomic;
    envelope.flags = MessageFlags::whole;
    envelope.length = envelope.eager = envelope.inline_length = sizeof(Atomic);
    change(envelope);
    return walk(envelope, sizeof(Atomic));
  };
  BOOST_TEST(atomic([](Envelope& e) { e.data = ~std::uint64_t{0}; }) == Refusal::none);
  BOOST_TEST(atomic([](Envelope& e) { e.length = e.eager = e.inline_length = 23; }) == Refusal::envelope);
  BOOST_TEST(atomic([](Envelope& e) { e.space = Space::barriers; }) == Refusal::envelope);
  BOOST_TEST(atomic([](Envelope& e) { e.flags |= MessageFlags::synchronous; }) == Refusal::envelope);
}

BOOST_AUTO_TEST_CASE(kinds_that_nobody_speaks_are_refused) {
  for (unsigned kind = 0; kind < 256; ++kind) {
    if (is_envelope(static_cast<Kind>(kind))) continue;
    Descriptor descriptor{};
    descriptor.kind = static_cast<Kind>(kind);
    std::vector<std::byte> bytes;
    append(bytes, descriptor);
    const bool spoken = kind >= 2 && kind <= static_cast<unsigned>(Kind::result);
    BOOST_TEST(walk(bytes, 1) == (spoken ? Refusal::none : Refusal::kind));
  }
}

BOOST_AUTO_TEST_CASE(entries_come_back_as_they_went) {
  Envelope envelope = good_envelope();
  envelope.eager = 10, envelope.inline_length = 10, envelope.tag = 42, envelope.flags = MessageFlags::whole;
  const Descriptor descriptor{Kind::want, flag_from_end, 0, 0, 77, 5, 6};
  std::vector<std::byte> bytes;
  append(bytes, envelope, 16);
  bytes[sizeof envelope] = std::byte{9};
  append(bytes, descriptor);
  EntryWalk walk(bytes, 2);
  const EntryWalk::Entry* entry = walk.next();
  BOOST_REQUIRE(entry != nullptr);
  BOOST_TEST(entry->envelope.tag == 42u);
  BOOST_TEST((entry->inline_data[0] == std::byte{9}));
  entry = walk.next();
  BOOST_REQUIRE(entry != nullptr);
  BOOST_TEST(entry->kind == Kind::want);
  BOOST_TEST(entry->descriptor.message == 77u);
  BOOST_TEST(walk.next() == nullptr);
  BOOST_TEST(walk.refusal() == Refusal::none);
}

// Decoding is total, and never looks past the end.
BOOST_AUTO_TEST_CASE(noise_gives_a_value_or_a_refusal) {
  std::mt19937 random(3);
  for (int round = 0; round < 20'000; ++round) {
    std::vector<std::byte> bytes(random() % 300);
    for (std::byte& b : bytes) b = static_cast<std::byte>(random() % 10);
    EntryWalk walk(bytes, static_cast<std::uint16_t>(random() % 34));
    int entries = 0;
    while (walk.next() != nullptr) ++entries;
    BOOST_REQUIRE(entries <= 34);
  }
}

BOOST_AUTO_TEST_CASE(every_refusal_has_words) {
  for (unsigned i = 0; i <= static_cast<unsigned>(Refusal::departure); ++i)
    BOOST_TEST(std::string_view(describe(static_cast<Refusal>(i))) != "unknown refusal");
}

BOOST_AUTO_TEST_SUITE_END()
