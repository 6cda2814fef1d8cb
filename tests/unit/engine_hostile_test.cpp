// SPDX-License-Identifier: BSD-3-Clause
// A peer that holds the key and breaks the rules, or means well and is broken: nothing piles up here.
#include "tests/unit/engine_test.hpp"

#include <initializer_list>

BOOST_AUTO_TEST_SUITE(engine_hostile)

using namespace parc::sim;

namespace {
// Puts trains of its own making on the link from host 0 to host 1.
class Stranger {
public:
  explicit Stranger(Hosts& hosts) : Stranger(hosts, hosts.link(1, 0)) {}
  // `credit`: fragments that may be sent to it.
  Stranger(Hosts& hosts, std::uint32_t link, std::uint64_t credit = 0)
      : engine_(hosts.engine(1)), link_(link), credit_(credit) {
    const Statement statement{statement_magic, 0, 0, credit, 0, 1, 2};
    BOOST_TEST(say(&statement, sizeof statement) == Refusal::none);
  }

  Refusal announce(Envelope envelope) {
    envelope.kind = Kind::envelope;
    return say_one(envelope);
  }
  Refusal get(Envelope envelope) {
    envelope.kind = Kind::get;
    return say_one(envelope);
  }
  Refusal put(Envelope envelope) {
    envelope.kind = Kind::put;
    envelope.flags = MessageFlags::synchronous | when(envelope.length == 0, MessageFlags::whole);
    return say_one(envelope);
  }
  Refusal describe(Kind kind, std::uint64_t message, std::uint64_t extra, std::uint8_t flags = 0) {
    Descriptor descriptor{};
    descriptor.kind = kind;
    descriptor.flags = flags;
    descriptor.message = message;
    descriptor.extra = extra;
    return say_one(descriptor);
  }
  Refusal watch(std::uint64_t endpoint) {
    Descriptor watch{};
    watch.kind = Kind::watch;
    watch.message = endpoint;
    return say_one(watch);
  }
  [[nodiscard]] std::size_t kept() const { return engine_.link(link_).incoming.size(); }

private:
  template <class Entry> Refusal say_one(const Entry& entry) {
    Prefix prefix{};
    prefix.magic = train_magic;
    prefix.header_length = sizeof prefix + sizeof entry;
    prefix.entries = 1;
    prefix.sequence = ++sequence_;
    prefix.credit = credit_;
    prefix.source_host = 1;
    prefix.destination_host = 2;
    Bytes train(prefix.header_length);
    std::memcpy(train.data(), &prefix, sizeof prefix);
    std::memcpy(train.data() + sizeof prefix, &entry, sizeof entry);
    return say(train.data(), train.size());
  }
  Refusal say(const void* bytes, std::size_t size) {
    std::array<iovec, 4> places;
    engine_.plan_read(link_, places);
    std::memcpy(places[0].iov_base, bytes, size);
    return engine_.took(link_, size);
  }

  Engine& engine_;
  std::uint32_t link_;
  std::uint64_t sequence_ = 0, credit_ = 0;
};

Envelope long_message(std::uint64_t to, std::uint64_t name) {
  Envelope envelope{};
  envelope.source = to == kernel_endpoint ? kernel_endpoint : 1;
  envelope.destination = to;
  envelope.sequence = name;
  envelope.length = 1'000'000;
  envelope.message = name;
  return envelope;
}

} // namespace

// Messages for nobody are forgotten at once: their writers hear of the departure, not of them.
BOOST_AUTO_TEST_CASE(messages_that_nobody_will_read_are_not_kept) {
  Settings settings;
  settings.unmatched = 0;
  Hosts hosts({0, 1, 1}, settings);
  hosts.engine(1).leave(hosts.endpoint(2));
  Stranger stranger(hosts);
  for (std::uint64_t name = 1; name <= 1000; ++name) {
    BOOST_TEST((stranger.announce(long_message(hosts.endpoint(2), name)) == Refusal::none));
  }
  BOOST_TEST(stranger.kept() == 0u);
  for (std::uint64_t name = 1; name <= pair_envelopes; ++name)
    BOOST_TEST((stranger.announce(long_message(hosts.endpoint(1), name)) == Refusal::none));
  BOOST_TEST(stranger.kept() == pair_envelopes);
  BOOST_TEST((stranger.announce(long_message(hosts.endpoint(1), pair_envelopes + 1)) == Refusal::credit));
}

// As many as it has places for: their answers wait for this link, which takes nothing.
BOOST_AUTO_TEST_CASE(gets_that_nobody_takes_the_answers_of_are_bounded) {
  Settings settings;
  settings.unmatched = 0;
  Hosts hosts({0, 1}, settings);
  Bytes window = pattern(1'000'000, 1);
  hosts.expose(1, window);
  Stranger stranger(hosts);
  for (std::uint64_t name = 1; name <= pair_envelopes; ++name) {
    Envelope get = long_message(hosts.endpoint(1), name);
    get.tag = 1;
    BOOST_TEST((stranger.get(get) == Refusal::none));
  }
  BOOST_TEST(hosts.record(1).held == pair_envelopes);
  Envelope more = long_message(hosts.endpoint(1), pair_envelopes + 1);
  BOOST_TEST((stranger.get(more) == Refusal::credit));
  hosts.break_link(0, 1);
  BOOST_TEST(hosts.record(1).held == 0u);
}

BOOST_AUTO_TEST_CASE(answers_to_what_nobody_asked) {
  Hosts hosts({0, 1});
  Bytes in(10);
  const Op& get = hosts.get(1, 0, 0, in); // which has not left
  Stranger stranger(hosts);
  const std::uint64_t name = std::uint64_t{1} << 32; // its message's
  BOOST_TEST((stranger.describe(Kind::refused, name, 3) == Refusal::none));
  BOOST_TEST((stranger.describe(Kind::refused, name, 0) == Refusal::request));
  BOOST_TEST(!get.finished);
}

// Its first put never comes: whatever it sends behind that is kept as messages that nobody reads are.
BOOST_AUTO_TEST_CASE(what_is_behind_a_put_that_never_comes_is_bounded) {
  Settings settings;
  settings.unmatched = 0;
  Hosts hosts({0, 1}, settings);
  Bytes window(1'000'000), in(10);
  hosts.expose(1, window);
  Stranger stranger(hosts);
  Op& read = hosts.read(1, -1, -1, in);
  for (std::uint64_t name = 1; name <= pair_envelopes + 1; ++name) {
    Envelope next = long_message(hosts.endpoint(1), name);
    next.tag = 1;
    const Refusal refusal = name % 3 == 1   ? stranger.put(next)
                            : name % 3 == 2 ? stranger.announce(next)
                                            : stranger.get(next);
    BOOST_TEST((refusal == Refusal::none));
  }
  BOOST_TEST(!read.begun);
  BOOST_TEST(hosts.record(1).held == 1u);
  BOOST_TEST(Invariants::broken(hosts.engine(1)) == "");
  BOOST_TEST((stranger.put(long_message(hosts.endpoint(1), pair_envelopes + 2)) == Refusal::credit));
  hosts.break_link(0, 1);
  BOOST_TEST(hosts.record(1).held == 0u);
  BOOST_TEST(Invariants::broken(hosts.engine(1)) == "");
}

BOOST_DATA_TEST_CASE(news_of_what_nobody_has_put, data::make({false, true}), refused) {
  const Kind kind = refused ? Kind::refused : Kind::matched;
  Hosts hosts({0, 1});
  Bytes out = pattern(10, 1);
  const Op& put = hosts.put(1, 0, 0, out); // which has not left
  Stranger stranger(hosts);
  BOOST_TEST((stranger.describe(kind, put.handle + 1, 3, flag_put) == Refusal::none));
  BOOST_TEST((stranger.describe(kind, put.handle, 3, flag_put) == Refusal::request));
  BOOST_TEST(!put.finished);
}

// Its writer's memory may go when it has ended, whatever its peer has read.
BOOST_AUTO_TEST_CASE(a_put_that_is_said_to_be_in_place_before_it_is_written) {
  Hosts hosts({0, 1});
  Bytes out = pattern(100'000, 1);
  const Op& put = hosts.put(1, 0, 0, out);
  const auto names = [&] {
    const auto train = hosts.engine(1).plan_write(hosts.link(1, 0));
    return std::ranges::any_of(train, [&](const iovec& part) {
      const auto* const base = static_cast<const std::byte*>(part.iov_base);
      return base >= out.data() && base < out.data() + out.size();
    });
  };
  const auto write_a_train = [&] {
    std::size_t bytes = 0;
    for (const iovec& part : hosts.engine(1).plan_write(hosts.link(1, 0))) bytes += part.iov_len;
    hosts.engine(1).wrote(hosts.link(1, 0), bytes);
  };
  write_a_train(); // its own statement
  Stranger stranger(hosts, hosts.link(1, 0), 100);
  write_a_train(); // the envelope
  BOOST_TEST(names());
  BOOST_TEST((stranger.describe(Kind::matched, put.handle, 0) == Refusal::none));
  BOOST_TEST(put.finished);
  BOOST_TEST(!names());
}

BOOST_AUTO_TEST_CASE(puts_whose_ends_nobody_hears_are_bounded) {
  Hosts hosts({0, 1});
  Bytes window(100);
  hosts.expose(1, window);
  Stranger stranger(hosts);
  constexpr std::uint64_t most = std::uint64_t{1} << 20;
  Refusal refusal = Refusal::none;
  std::uint64_t name = 0;
  for (; refusal == Refusal::none && name <= most + 1; ++name) {
    Envelope put = long_message(hosts.endpoint(1), name + 1);
    put.tag = name % 2 + 1; // every second one has no place
    put.length = 0;
    refusal = stranger.put(put);
  }
  BOOST_TEST((refusal == Refusal::credit));
  BOOST_TEST(name == most + 2);
  BOOST_TEST(stranger.kept() == 0u);
  BOOST_TEST(hosts.record(1).held == 0u);
}

// What a program may have in its request.
BOOST_AUTO_TEST_CASE(a_put_with_flags_of_a_message) {
  Hosts hosts({0, 1});
  Bytes window(100), out = pattern(10, 1);
  hosts.expose(1, window);
  WriteRequest request;
  request.destination = 1;
  request.tag = 1;
  request.flags = ~MessageFlags::none;
  request.memory = Pieces(out.data(), out.size());
  request.put = true;
  const Op& put = hosts.post(0, request);
  hosts.settle();
  BOOST_TEST(put.finished);
  BOOST_TEST((put.outcome.fault == Fault::none));
  BOOST_TEST(std::equal(out.begin(), out.end(), window.begin()));
}

BOOST_AUTO_TEST_CASE(fragments_of_a_get_that_has_not_left) {
  Hosts hosts({0, 1});
  Bytes in(10);
  const Op& get = hosts.get(1, 0, 0, in);
  Stranger stranger(hosts);
  BOOST_TEST((stranger.describe(Kind::fragments, 5, std::uint64_t{1} << 32) == Refusal::fragment));
  BOOST_TEST(!get.finished);
}

BOOST_AUTO_TEST_CASE(kernels_speak_in_a_space_of_their_own) {
  Hosts hosts({0, 1});
  Stranger stranger(hosts);
  Envelope envelope = long_message(kernel_endpoint, 1);
  envelope.space = Space::kernels;
  BOOST_TEST((stranger.announce(envelope) == Refusal::none));
  envelope = long_message(kernel_endpoint, 2);
  BOOST_TEST((stranger.announce(envelope) == Refusal::envelope));
}

// As from a host that only relays.
BOOST_AUTO_TEST_CASE(over_a_link_for_kernels_alone_nothing_comes_to_programs) {
  Hosts hosts({0, 1});
  Stranger stranger(hosts, hosts.engine(1).add_link({.self = 2, .peer = 1, .kernels_only = true}));
  Envelope envelope = long_message(kernel_endpoint, 1);
  envelope.space = Space::kernels;
  BOOST_TEST((stranger.announce(envelope) == Refusal::none));
  BOOST_TEST((stranger.announce(long_message(hosts.endpoint(1), 1)) == Refusal::destination));
  Stranger another(hosts, hosts.engine(1).add_link({.self = 2, .peer = 1, .kernels_only = true}));
  BOOST_TEST((another.watch(hosts.endpoint(1)) == Refusal::destination));
}

// What the peer has no place for waits at home, in order, and the peer keeps its word.
BOOST_DATA_TEST_CASE(more_words_between_kernels_than_there_are_places, data::make({8, 2000}), size) {
  Settings settings;
  settings.unmatched = 0;
  Hosts hosts({0, 1}, settings);
  hosts.settle();
  std::deque<Bytes> out, in;
  std::vector<Op*> writes;
  for (std::uint32_t i = 0; i < 100; ++i) {
    out.push_back(pattern(static_cast<std::size_t>(size), i));
    writes.push_back(&hosts.kernel_write(0, 1, out.back()));
  }
  hosts.settle(); // and nobody is refused
  BOOST_TEST(std::count_if(writes.begin(), writes.end(), [](const Op* op) { return op->finished; }) ==
             pair_envelopes);
  hosts.engine(0).cancel(writes[99]->handle); // one that waits
  BOOST_TEST((writes[99]->outcome.fault == Fault::canceled));
  for (std::uint32_t i = 0; i < 99; ++i) {
    in.emplace_back(static_cast<std::size_t>(size));
    hosts.kernel_read(1, 0, in.back());
  }
  hosts.settle();
  for (std::size_t i = 0; i < 99; ++i) BOOST_TEST((writes[i]->finished && in[i] == out[i]));
  writes.clear();
  for (std::uint32_t i = 0; i < 50; ++i) writes.push_back(&hosts.kernel_write(0, 1, out[i]));
  hosts.settle();
  hosts.break_link(0, 1);
  for (const Op* op : writes) BOOST_TEST(op->finished);
}

// Links come and go; what each left to be read still has its place in the pool, and no later link gets it.
BOOST_AUTO_TEST_CASE(what_a_broken_link_left_keeps_its_place_in_the_pool) {
  Settings settings;
  settings.pool = 64 * 1024;
  settings.link_window = 64 * 1024;
  Hosts hosts({0, 1}, settings);
  hosts.settle();
  Bytes out = pattern(40'000, 1), in(40'000);
  hosts.write(0, 1, 5, out);
  hosts.settle();
  hosts.break_link(0, 1);
  Engine& engine = hosts.engine(1);
  BOOST_TEST(engine.pool_in_use() == 40'000u);
  const std::uint32_t second = engine.add_link({4096, 2, 1});
  BOOST_TEST(engine.link(second).reserved == (64 * 1024 - 40'000) / 4096u);
  engine.break_link(second);
  BOOST_TEST(hosts.read(1, 0, 5, in).finished);
  BOOST_TEST((in == out));
  BOOST_TEST(engine.pool_in_use() == 0u);
  BOOST_TEST(engine.link(engine.add_link({4096, 2, 1})).reserved == 16u);
}

// Who is in a group is what another host says: none may take somebody else's endpoint, and none is made.
BOOST_AUTO_TEST_CASE(a_group_takes_nobody_who_is_taken) {
  Recorder record;
  Engine engine(Settings{}, record);
  const auto fresh = [&] { return Address{here, engine.add_endpoint()}; };
  const Address first = fresh(), second = fresh(), by_hand = fresh(), other = fresh(), gone = fresh();
  const std::uint64_t group = engine.add_group(std::vector<Address>{first, second});
  BOOST_TEST(group != Engine::no_group);
  engine.add_row(by_hand.number, by_hand);
  BOOST_TEST(engine.open(by_hand.number, 7));
  engine.kill(gone.number);
  const Address never{here, gone.number + 1}, kernel{here, engine.kernel()};
  const std::vector<std::vector<Address>> wrong{{other, first},  {by_hand, other}, {never, other},
                                                {kernel, other}, {other, other},   {gone, gone}};
  for (const auto& members : wrong) BOOST_TEST(engine.add_group(members) == Engine::no_group);
  BOOST_TEST(Invariants::rows(engine, by_hand.number) == 1u);
  BOOST_TEST(Invariants::rows(engine, first.number) == 2u);
  BOOST_TEST(Invariants::rows(engine, other.number) == 0u);

  const std::uint64_t later = engine.add_group(std::vector<Address>{other, gone});
  BOOST_TEST(later != Engine::no_group);
  engine.drop_group(later);
  BOOST_TEST(!engine.is_there(other.number));
  BOOST_TEST(engine.is_there(first.number));
  BOOST_TEST(engine.is_there(by_hand.number));
  engine.drop_group(group);
}

BOOST_AUTO_TEST_SUITE_END()
