// SPDX-License-Identifier: BSD-3-Clause
// Links over several byte streams: what comes over which, in what order, twice, or not at all.
#include "tests/unit/engine_test.hpp"

BOOST_AUTO_TEST_SUITE(engine_subflows)

using namespace parc::sim;

namespace {

constexpr std::size_t at_once = std::size_t{1} << 20;

// Two hosts, whose link has subflows beside its first carrier.
struct Striped : Hosts {
  explicit Striped(std::size_t count) : Hosts({0, 1}), to(count), from(count) {
    settle();
    for (std::size_t i = 0; i < count; ++i) {
      BOOST_TEST_REQUIRE(engine(0).add_subflow(link(0, 1)).value() == i + 1);
      BOOST_TEST_REQUIRE(engine(1).add_subflow(link(1, 0)).value() == i + 1);
    }
  }
  // From host 0 to host 1, or back; false: there was nothing.
  bool send(std::uint32_t subflow, bool back = false) {
    return (back ? from : to)[subflow - 1].fill(engine(back ? 1 : 0), back ? link(1, 0) : link(0, 1), at_once,
                                                subflow) != 0;
  }
  bool receive(std::uint32_t subflow, bool back = false, std::size_t most = at_once) {
    Refusal refusal = Refusal::none;
    const bool moved =
        (back ? from : to)[subflow - 1].drain(engine(back ? 0 : 1), back ? link(0, 1) : link(1, 0), most, 64,
                                              refusal, subflow) != 0;
    BOOST_TEST_REQUIRE((refusal == Refusal::none));
    return moved;
  }
  bool move(std::uint32_t subflow) {
    bool moved = send(subflow);
    moved |= receive(subflow);
    moved |= send(subflow, true);
    return receive(subflow, true) || moved;
  }
  void check() {
    for (std::uint32_t host : {0u, 1u}) BOOST_TEST_REQUIRE(Invariants::broken(engine(host)) == "");
  }
  // Until nothing moves, but for what one of them has on its way.
  void run(std::uint32_t silent = 0) {
    for (bool moved = true; moved; check()) {
      moved = step();
      for (std::uint32_t subflow = 1; subflow <= to.size(); ++subflow)
        if (subflow != silent && engine(0).link(link(0, 1)).subflow(subflow) != nullptr)
          moved |= move(subflow);
      for (std::uint32_t host : {0u, 1u}) {
        moved |= engine(host).owes_acknowledgement();
        engine(host).flush_acknowledgements();
      }
    }
  }
  void drop(std::uint32_t subflow) {
    engine(0).drop_subflow(link(0, 1), subflow);
    engine(1).drop_subflow(link(1, 0), subflow);
    to[subflow - 1].clear(), from[subflow - 1].clear();
  }
  std::vector<Pipe> to, from; // of the subflows
};

// One from host 0 to host 1, of which has moved what the first carrier brings.
struct Message {
  Bytes out, in;
  const Op &read, &write;
  Message(Striped& hosts, std::size_t bytes, bool from_end = false)
      : out(pattern(bytes, 1)), in(bytes), read(hosts.read(1, 0, 1, in, from_end)),
        write(hosts.write(0, 1, 1, out)) {
    while (hosts.step()) {
    }
  }
  Message(const Message&) = delete;
  Message& operator=(const Message&) = delete;
};

bool fine(const Op& op) {
  return op.finished && op.outcome.fault == Fault::none;
}

} // namespace

BOOST_DATA_TEST_CASE(what_was_asked_for_goes_over_all, data::make({false, true}), from_end) {
  Striped hosts(3);
  Message message(hosts, 5'000'001, from_end);
  auto& [out, in, read, write] = message;
  const std::uint64_t first = hosts.engine(0).link(hosts.link(0, 1)).bytes_out;
  BOOST_TEST(first < 200'000u); // what goes unasked, and no more
  for (std::uint32_t subflow : {1u, 2u, 3u}) BOOST_TEST(hosts.send(subflow));
  hosts.run();
  BOOST_TEST((fine(read) && fine(write)));
  BOOST_TEST((in == out));
}

// Its bytes come by others, and once more when nobody waits for them: the memory is its program's by then.
BOOST_AUTO_TEST_CASE(one_is_silent) {
  Striped hosts(3);
  Message message(hosts, 3'000'000);
  auto& [out, in, read, write] = message;
  for (int i = 0; i < 3; ++i) hosts.send(2);
  hosts.run(2);
  BOOST_TEST(!read.finished);
  BOOST_TEST(read.progress.front < in.size());
  hosts.engine(0).doubt_subflow(hosts.link(0, 1), 2);
  hosts.run(2);
  BOOST_TEST((fine(read) && fine(write)));
  BOOST_TEST((in == out));
  const Bytes used = pattern(in.size(), 2);
  in = used;
  out.assign(out.size(), std::byte{0});
  hosts.run();
  BOOST_TEST((in == used));
  BOOST_TEST(hosts.engine(0).link(hosts.link(0, 1)).usable_subflows == 3u); // it has brought something
}

// A half-written copy of what is there already names its memory no more.
BOOST_AUTO_TEST_CASE(memory_goes_before_a_copy_of_it_is_written) {
  Striped hosts(2);
  auto out = std::make_unique<Bytes>(pattern(2'000'000, 1));
  Bytes in(out->size());
  const Op& read = hosts.read(1, 0, 1, in);
  const Op& write = hosts.write(0, 1, 1, *out);
  while (hosts.step()) {
  }
  hosts.to[0] = Pipe(100); // full before its train is written
  BOOST_TEST(hosts.send(1));
  hosts.engine(0).doubt_subflow(hosts.link(0, 1), 1);
  hosts.run(1);
  BOOST_TEST((fine(read) && fine(write)));
  BOOST_TEST((in == *out));
  out.reset();
  hosts.run();
}

BOOST_AUTO_TEST_CASE(one_ends_at_any_byte) {
  for (std::size_t cut = 1; cut < 300'000; cut += cut < 300 ? 7 : 9973) {
    Striped hosts(2);
    Message message(hosts, 700'000);
    auto& [out, in, read, write] = message;
    while (hosts.send(1)) {
    }
    hosts.receive(1, false, cut);
    hosts.check();
    hosts.drop(1);
    hosts.check();
    if (cut % 2 == 0) hosts.drop(2); // the first carrier brings the rest
    hosts.run();
    BOOST_TEST_REQUIRE((fine(read) && fine(write)));
    BOOST_TEST_REQUIRE((in == out));
  }
}

BOOST_AUTO_TEST_CASE(the_first_carrier_ends_meanwhile) {
  Striped hosts(2);
  Message message(hosts, 3'000'000);
  auto& [out, in, read, write] = message;
  hosts.engine(0).detach(hosts.link(0, 1));
  hosts.engine(1).detach(hosts.link(1, 0));
  for (int i = 0; i < 100; ++i)
    for (std::uint32_t subflow : {1u, 2u}) hosts.move(subflow);
  BOOST_TEST(read.progress.front + read.progress.back > 2'000'000u);
  hosts.break_carrier(0, 1);
  hosts.run();
  BOOST_TEST((fine(read) && fine(write)));
  BOOST_TEST((in == out));
}

// Whoever has read a message and leaves has read it: the writer hears of that first, whatever its subflows
// have acknowledged.
BOOST_AUTO_TEST_CASE(a_reader_leaves_with_what_it_has_read) {
  Striped hosts(2);
  Message message(hosts, 700'000);
  auto& [out, in, read, write] = message;
  for (bool moved = true; moved;) {
    moved = false;
    for (std::uint32_t subflow : {1u, 2u}) moved |= hosts.send(subflow) || hosts.receive(subflow);
  }
  BOOST_TEST(fine(read));
  BOOST_TEST(!write.finished);
  hosts.engine(1).leave(hosts.endpoint(1));
  hosts.settle();
  BOOST_TEST(fine(write));
  hosts.run();
}

BOOST_AUTO_TEST_CASE(who_is_killed_takes_what_is_under_way) {
  for (const bool reader : {false, true}) {
    Striped hosts(2);
    Message message(hosts, 700'000);
    auto& [out, in, read, write] = message;
    hosts.send(1), hosts.send(2);
    hosts.receive(1, false, 50'000);
    hosts.engine(reader ? 1 : 0).kill(hosts.endpoint(reader ? 1 : 0));
    hosts.check();
    hosts.run();
    BOOST_TEST((read.finished && write.finished));
    BOOST_TEST((read.outcome.fault == (reader ? Fault::canceled : Fault::peer)));
  }
}

// Envelopes, credit and what nobody has asked for do not come over a subflow.
BOOST_AUTO_TEST_CASE(what_a_subflow_may_not_bring) {
  const auto said = [](const Prefix& changed, const Descriptor& entry) {
    Striped hosts(1);
    Prefix prefix = changed;
    prefix.magic = train_magic;
    prefix.header_length = sizeof prefix + sizeof entry;
    prefix.entries = 1;
    prefix.sequence = 1;
    prefix.source_host = 1;
    prefix.destination_host = 2;
    std::array<iovec, 4> places;
    hosts.engine(1).plan_read(hosts.link(1, 0), places, 1);
    std::memcpy(places[0].iov_base, &prefix, sizeof prefix);
    std::memcpy(static_cast<std::byte*>(places[0].iov_base) + sizeof prefix, &entry, sizeof entry);
    return hosts.engine(1).took(hosts.link(1, 0), sizeof prefix + sizeof entry, 1);
  };
  Descriptor run{};
  run.kind = Kind::fragments;
  run.length = 4096;
  Prefix prefix{};
  prefix.payload_length = 4096;
  BOOST_TEST((said(prefix, run) == Refusal::none)); // it may be a copy
  Descriptor want = run;
  want.kind = Kind::want;
  BOOST_TEST((said({}, want) == Refusal::kind));
  prefix.credit = 1;
  BOOST_TEST((said(prefix, run) == Refusal::credit));
  prefix = {};
  BOOST_TEST((said(prefix, run) == Refusal::length));
  prefix.payload_length = run.length = 0;
  BOOST_TEST((said(prefix, run) == Refusal::fragment));
  prefix.acknowledgement = 1;
  BOOST_TEST((said(prefix, run) == Refusal::ack));
}

BOOST_AUTO_TEST_CASE(there_are_so_many) {
  Striped hosts(0);
  for (std::size_t i = 0; i < Engine::most_subflows; ++i)
    BOOST_TEST(hosts.engine(0).add_subflow(hosts.link(0, 1)).has_value());
  BOOST_TEST(!hosts.engine(0).add_subflow(hosts.link(0, 1)).has_value());
  hosts.engine(0).drop_subflow(hosts.link(0, 1), 7);
  BOOST_TEST(hosts.engine(0).add_subflow(hosts.link(0, 1)).value() == 7u);
}

BOOST_AUTO_TEST_SUITE_END()

BOOST_AUTO_TEST_SUITE(progress)

using namespace parc::sim;

BOOST_AUTO_TEST_CASE(gaps_close) {
  Progress progress;
  BOOST_TEST(progress.add(0, 10, 100) == 10u);
  BOOST_TEST(progress.add(20, 10, 100) == 10u);
  BOOST_TEST(progress.add(40, 10, 100) == 10u);
  BOOST_TEST(progress.add(25, 20, 100) == 10u); // between two
  BOOST_TEST(progress.between.size() == 1u);
  BOOST_TEST(progress.front == 10u);
  std::uint64_t counted = 0, missing = 0;
  progress.each(5, 60, 100,
                [&](std::uint64_t, std::uint64_t n, bool there) { (there ? counted : missing) += n; });
  BOOST_TEST((counted == 35u && missing == 25u));
  BOOST_TEST(progress.add(95, 5, 100) == 5u);
  BOOST_TEST(progress.back == 5u);
  BOOST_TEST(progress.add(45, 50, 100) == 45u);
  BOOST_TEST(progress.back == 80u);
  BOOST_TEST(progress.add(0, 100, 100) == 10u);
  BOOST_TEST(progress.front + progress.back == 100u);
  BOOST_TEST(progress.between.empty());
  BOOST_TEST(progress.add(30, 50, 100) == 0u);
}

BOOST_AUTO_TEST_SUITE_END()
