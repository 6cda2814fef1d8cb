// SPDX-License-Identifier: BSD-3-Clause
// Two kernels' Peers and engines in one process and in virtual time, over streams that do whatever a stream
// may: messages arrive whole, once and in order, whatever becomes of the connections.
#include "daemon/link/peers.hpp"

#include "daemon/link/tls_stream.hpp"
#include "daemon/tool/known_hosts.hpp"
#include "tests/sim/faulty_network.hpp"

#include <boost/test/data/test_case.hpp>
#include <boost/test/unit_test.hpp>
#include <deque>
#include <fmt/ranges.h>
#include <nlohmann/json.hpp>
#include <spdlog/spdlog.h>

namespace parc::daemon {

BOOST_AUTO_TEST_SUITE(peers)

namespace {

using sim::FaultyNetwork, sim::StreamFaults;

// One kernel, as far as links go, and a program on it that writes and reads so many messages.
class Node : protocol::Listener {
public:
  Node(const std::string& name, std::uint64_t identity, std::uint16_t port, const Keys& key,
       FaultyNetwork& network)
      : address(numeric_address("127.0.0.1", port).value()), loop(&network.time), engine({}, *this),
        streams(network.streams_of(address)), encrypted(key, *streams),
        peers(loop, engine, encrypted, config, key, self(name, identity),
              {.link_up = [this](std::uint32_t at) { link = at; },
               .link_lost = [this](std::uint32_t) { lost = true; },
               .ping = [](std::uint32_t, std::uint64_t) {},
               .ask_streams = [](std::uint32_t, unsigned) {}}),
        endpoint(engine.add_endpoint()) {
    config.name = name;
    engine.open(endpoint, 0);
    peers.listen({.hosts = {"127.0.0.1"}, .advertised = {}, .port = port}, {});
  }

  void meet(Node& node) {
    other = &node;
    config.hosts["other"] = {"127.0.0.1", node.address.port()};
  }

  bool go_round() {
    loop.ring();
    std::uint64_t work = loop.end_step();
    work += peers.read();
    work += loop.end_step();
    work += peers.write();
    work += loop.end_step();
    const bool owes = work == 0 && engine.owes_acknowledgement();
    if (owes) engine.flush_acknowledgements();
    return work != 0 || owes;
  }

  // Message `number` of this node: its bytes tell which it is.
  std::vector<std::byte> message(std::uint64_t number) const {
    std::minstd_rand random(static_cast<std::minstd_rand::result_type>(number * 2 + address.port()));
    const std::size_t longest = random() % 8 == 0 ? 300'000 : 5000;
    std::vector<std::byte> bytes(random() % longest);
    for (std::byte& byte : bytes) byte = static_cast<std::byte>(random() >> 8);
    return bytes;
  }

  // Keeps some operations going, and checks those that are over: reads end in the order of the writes.
  void play(std::int32_t row, std::uint64_t messages) {
    constexpr std::size_t at_once = 8;
    while (written < messages && writes.size() < at_once) {
      auto& memory = writes[written] = message(written);
      engine.write(endpoint, {.cookie = write_bit | written,
                              .destination = static_cast<std::uint32_t>(row),
                              .tag = 7,
                              .flags = when(written % 3 == 1, protocol::MessageFlags::from_end),
                              .memory = {memory.data(), memory.size()}});
      ++written;
    }
    while (posted < messages && reads.size() < at_once) {
      auto& memory = reads[posted];
      memory.resize(other->message(posted).size());
      engine.read(endpoint, {.cookie = posted,
                             .source = row,
                             .tag = 7,
                             .flags = when(posted % 3 == 1, protocol::MessageFlags::from_end),
                             .memory = {memory.data(), memory.size()}});
      ++posted;
    }
    for (const auto& [cookie, outcome] : std::exchange(over, {})) {
      BOOST_REQUIRE((outcome.fault == protocol::Fault::none));
      const std::uint64_t number = cookie & ~write_bit;
      if ((cookie & write_bit) != 0) {
        BOOST_REQUIRE(writes.erase(number) == 1);
        continue;
      }
      const std::vector<std::byte> expected = other->message(number);
      BOOST_REQUIRE(outcome.total == expected.size());
      BOOST_REQUIRE((reads.at(number) == expected));
      reads.erase(number);
      ++received;
    }
  }
  [[nodiscard]] bool done(std::uint64_t messages) const {
    return received == messages && writes.empty() && written == messages;
  }

  static constexpr std::uint64_t write_bit = std::uint64_t{1} << 40;
  Address address;
  Config config;
  Node* other = nullptr;
  Loop loop;
  protocol::Engine engine;
  std::unique_ptr<StreamMaker> streams;
  TlsStreams encrypted;
  Peers peers;
  std::uint64_t endpoint;
  std::optional<std::uint32_t> link;
  bool lost = false;
  std::uint64_t written = 0, posted = 0, received = 0;
  std::map<std::uint64_t, std::vector<std::byte>> writes, reads; // under way
  std::vector<std::pair<std::uint64_t, protocol::Outcome>> over;

private:
  static LocalHost self(const std::string& name, std::uint64_t identity) {
    LocalHost made;
    made.name = name;
    made.identity = identity;
    return made;
  }
  void begun(std::uint64_t, const protocol::Outcome&) override {}
  void progressed(std::uint64_t, const protocol::Progress&) override {}
  void finished(std::uint64_t cookie, const protocol::Outcome& outcome) override {
    over.emplace_back(cookie, outcome);
  }
  void drained(std::uint64_t) override {}
};

struct Quiet { // outages are what these tests are made of
  spdlog::level::level_enum before = spdlog::get_level();
  Quiet() { spdlog::set_level(spdlog::level::off); }
  ~Quiet() { spdlog::set_level(before); }
};

// The network has the say before the nodes go, and after.
struct Two : Quiet {
  FaultyNetwork network;
  Key key{};
  Node a, b;
  Two(std::uint64_t seed, const StreamFaults& faults)
      : network(seed, faults), a("a", 10 + seed % 2, 7001, key, network),
        b("b", 11 - seed % 2, 7002, key, network) {
    a.meet(b);
    b.meet(a);
  }

  void go_round() {
    network.tick();
    const bool moved = a.go_round();
    if (b.go_round() || moved || !network.idle()) return;
    const auto first = a.loop.next_timer(), second = b.loop.next_timer();
    BOOST_REQUIRE((first || second)); // else nothing will ever happen
    network.time = std::max(network.time,
                            std::min(first.value_or(Loop::Time::max()), second.value_or(Loop::Time::max())));
  }

  void go_round_if_anything() {
    network.tick();
    (void)a.go_round();
    (void)b.go_round();
  }

  void a_goes_alone() {
    network.tick();
    if (a.go_round() || !network.idle()) return;
    BOOST_REQUIRE(a.loop.next_timer().has_value());
    network.time = std::max(network.time, *a.loop.next_timer());
  }

  void exchange(std::uint64_t messages) {
    bool failed = false;
    for (Node* const node : {&a, &b})
      node->peers.connect("other", [&failed](const Result<std::int32_t>& link) { failed |= !link; });
    while (!a.link || !b.link) {
      go_round();
      BOOST_REQUIRE(!failed);
    }
    const std::int32_t to_b = a.engine.add_row(a.endpoint, {static_cast<std::int32_t>(*a.link), b.endpoint});
    const std::int32_t to_a = b.engine.add_row(b.endpoint, {static_cast<std::int32_t>(*b.link), a.endpoint});
    while (!a.done(messages) || !b.done(messages)) {
      a.play(to_b, messages);
      b.play(to_a, messages);
      go_round();
      BOOST_REQUIRE((!failed && !a.lost && !b.lost));
    }
  }
};

bool go_until(FaultyNetwork& network, const std::vector<Node*>& nodes, const std::function<bool()>& done) {
  for (int rounds = 0; rounds < 100'000 && !done(); ++rounds) {
    network.tick();
    bool moved = false;
    for (Node* node : nodes) moved |= node->go_round();
    if (moved || !network.idle()) continue;
    Loop::Time next = Loop::Time::max();
    for (const Node* node : nodes) next = std::min(next, node->loop.next_timer().value_or(Loop::Time::max()));
    using namespace std::chrono_literals;
    network.time = next != Loop::Time::max() ? std::max(network.time, next) : network.time + 100ms;
  }
  return done();
}

using Answer = std::shared_ptr<std::optional<Result<std::int32_t>>>;
Answer ask(Node& node, const std::string& host, Dialer::Wish wish) {
  const auto answer = std::make_shared<std::optional<Result<std::int32_t>>>();
  node.peers.connect(
      host, [answer](const Result<std::int32_t>& link) { *answer = link; }, wish);
  return answer;
}

} // namespace

BOOST_AUTO_TEST_CASE(streams_that_move_a_byte_at_a_time) {
  Two two(1, {.most_at_once = 1, .stalls = 0});
  two.exchange(20);
}

BOOST_AUTO_TEST_CASE(streams_that_fragment_and_stall) {
  for (std::uint64_t seed = 1; seed <= 6; ++seed) {
    BOOST_TEST_CONTEXT("seed " << seed) {
      Two two(seed,
              {.most_at_once = 1 + seed * seed * seed * 100, .stalls = static_cast<unsigned>(2 + seed)});
      two.exchange(100);
    }
  }
}

BOOST_DATA_TEST_CASE(streams_that_break_at_any_byte, boost::unit_test::data::xrange(1, 5), seed) {
  Two two(static_cast<std::uint64_t>(seed), {.most_of_life = 150'000});
  two.exchange(120);
  BOOST_TEST(two.network.breaks >= 5u);
}

// Of the two connections one stays, whatever order their handshakes end in; what each waited for is over with
// the first of them.
BOOST_AUTO_TEST_CASE(who_dial_each_other_lose_no_connection) {
  for (std::uint64_t seed = 401; seed <= 700; ++seed) {
    BOOST_TEST_CONTEXT("seed " << seed) {
      Two two(seed, {.most_at_once = seed % 3 == 0 ? 100000 : 1 + seed % 97,
                     .stalls = static_cast<unsigned>(seed % 13 < 2 ? 0 : 1 + seed % 13)});
      unsigned reached = 0;
      const auto count = [&reached](const Result<std::int32_t>& link) { reached += link ? 1 : 0; };
      two.a.peers.connect("other", count, {.identity = two.b.peers.self().identity});
      for (std::uint64_t i = 0; i < seed % 23; ++i) two.go_round_if_anything();
      two.b.peers.connect("other", count, {.identity = two.a.peers.self().identity});
      const auto is_up = [](Node& node) {
        return node.link && node.engine.link(*node.link).carrier.stage == protocol::Carrier::Stage::up;
      };
      bool was_up = false;
      int down = 0;                  // rounds on end
      constexpr int most_down = 100; // while the other connection takes over
      for (int after = 0; after < 400; after += was_up ? 1 : 0) {
        reached == 2 ? two.go_round_if_anything() : two.go_round();
        const bool now_up = is_up(two.a) && is_up(two.b);
        down = was_up && !now_up ? down + 1 : 0;
        was_up |= now_up;
        if (down > most_down) break;
      }
      BOOST_TEST(reached == 2u);
      BOOST_TEST(was_up);
      BOOST_TEST(down <= most_down);
    }
  }
}

// Who asks for a host that is being tried already has as much time as who asked first.
BOOST_AUTO_TEST_CASE(each_waits_for_a_host_in_its_own_time) {
  using namespace std::chrono_literals;
  Two two(3, {});
  two.network.hang_up(two.b.address);
  std::optional<Result<std::int32_t>> first, second;
  const Loop::Time end = two.network.time + std::chrono::seconds(two.a.config.connect_timeout_s);
  two.a.peers.connect("other", [&](const Result<std::int32_t>& link) { first = link; });
  while (two.network.time < end - 1s) two.go_round();
  BOOST_TEST(!first);
  two.a.peers.connect("other", [&](const Result<std::int32_t>& link) { second = link; });
  while (!first) two.go_round();
  BOOST_TEST(!first->has_value());
  BOOST_TEST(!second);
  two.network.answer_again(two.b.address);
  while (!second) two.go_round();
  BOOST_TEST(second->has_value());
}

// Who is in haste, and asks for a host where nobody listens, has no time at all; and none is taken from who
// is not.
BOOST_AUTO_TEST_CASE(haste_hears_at_once) {
  using namespace std::chrono_literals;
  Two two(3, {});
  two.network.hang_up(two.b.address);
  std::optional<Result<std::int32_t>> hasty, patient;
  const Loop::Time begin = two.network.time;
  two.a.peers.connect("other", [&](const Result<std::int32_t>& link) { hasty = link; }, {.in_haste = true});
  two.a.peers.connect("other", [&](const Result<std::int32_t>& link) { patient = link; });
  while (!hasty) two.go_round();
  BOOST_TEST(hasty->error().code == ECONNREFUSED);
  BOOST_TEST((two.network.time < begin + 1s));
  BOOST_TEST(!patient);
  two.network.answer_again(two.b.address);
  while (!patient) two.go_round();
  BOOST_TEST(patient->has_value());
}

// Whoever is refused where it has met the other kernel takes it for dead. Where it never has, a gateway may
// be what refuses: the other one dials when it can. Here it cannot for some seconds.
BOOST_AUTO_TEST_CASE(a_refusal_is_a_death_only_where_the_kernel_was_met) {
  using namespace std::chrono_literals;
  enum class Met { by_dialing, by_calling_back, never };
  for (const Met met : {Met::by_dialing, Met::by_calling_back, Met::never}) {
    Two two(5, {});
    if (met == Met::never) two.network.hang_up(two.b.address);
    Node& dials = met == Met::by_dialing ? two.a : two.b;
    dials.peers.connect("other", [](const Result<std::int32_t>&) {});
    while (!two.a.link || !two.b.link) two.go_round();
    const auto stage = [&] { return two.a.engine.link(*two.a.link).carrier.stage; };
    while (stage() != protocol::Carrier::Stage::up || !two.network.idle()) two.go_round();
    two.network.hang_up(two.b.address);
    two.network.cut_all();
    const Loop::Time end = two.network.time + 3s;
    while (two.network.time < end && !two.a.lost) two.a_goes_alone();
    BOOST_TEST(two.a.lost == (met != Met::never));
    while (met == Met::never && stage() != protocol::Carrier::Stage::up) two.go_round();
  }
}

// Whoever holds a relay key may call itself what it likes: that opens nothing, and takes nothing from the
// kernel that is meant.
BOOST_AUTO_TEST_CASE(a_relay_key_proves_no_identity) {
  for (std::uint64_t seed = 1; seed <= 20; ++seed) {
    BOOST_TEST_CONTEXT("seed " << seed) {
      Two two(seed, {.stalls = static_cast<unsigned>(seed % 5 == 0 ? 0 : 1 + seed % 5)});
      const std::uint64_t meant = two.b.peers.self().identity;
      const bool relay_first = seed % 2 == 0; // it is b then, as it says, or else b's successor
      Node relay("b", relay_first ? meant : meant + 5, 7003, relay_keys(two.key), two.network);
      relay.config.hosts["other"] = {"127.0.0.1", two.a.address.port()};
      // Where b listens.
      relay.peers.listen({.hosts = {"127.0.0.1"}, .advertised = {}, .port = 7002},
                         relay_first ? Predecessors{} : Predecessors{meant});
      two.a.config.hosts["relay"] = {.address = "127.0.0.1", .port = 7003, .only_relays = true};
      const auto until = [&](const std::function<bool()>& done) {
        return go_until(two.network, {&two.a, &two.b, &relay}, done);
      };
      const auto linked = relay_first ? nullptr : ask(two.a, "other", {.identity = meant});
      if (linked) BOOST_TEST_REQUIRE(until([&] { return linked->has_value(); }));
      const auto relayed = ask(relay, "other", {.to_relay = true});
      BOOST_TEST_REQUIRE(until([&] { return relayed->has_value() && two.a.link && relay.link; }));
      BOOST_TEST((*relayed)->has_value());
      BOOST_TEST(!two.a.lost);
      const Loop::Time soon = two.network.time + std::chrono::seconds(1);
      (void)until([&] { return two.network.time >= soon; });
      BOOST_TEST(two.b.link.has_value() == !relay_first); // nobody calls it back there
      if (relay_first) {
        BOOST_TEST(two.a.peers.only_relays(static_cast<std::int32_t>(*two.a.link)));
        BOOST_TEST(!two.a.peers.link_to(meant).has_value());
        BOOST_TEST(two.a.peers.linked().empty());
        BOOST_TEST(two.a.peers.near_links().empty());
        BOOST_TEST(!two.a.peers.near_link(meant, "b").has_value());
      }
      const auto later = ask(two.a, "other", {.identity = meant});
      const auto refused = ask(two.a, "relay", {}), again = ask(two.a, "relay", {.to_relay = true});
      BOOST_TEST_REQUIRE(until([&] { return *later && *refused && *again && two.b.link; }));
      BOOST_TEST_REQUIRE((*later)->has_value());
      BOOST_TEST(!two.a.peers.only_relays((*later)->value()));
      BOOST_TEST((two.a.peers.link_to(meant) == (*later)->value()));
      BOOST_TEST((*refused)->error().code == EACCES);
      BOOST_TEST_REQUIRE((*again)->has_value());
      BOOST_TEST(two.a.peers.only_relays((*again)->value()));
      BOOST_TEST((!two.a.lost && !two.b.lost && !relay.lost));
    }
  }
}

// Whoever holds a relay key may be as many as it likes: so many are let in, and nobody who holds more is kept
// out by them.
BOOST_AUTO_TEST_CASE(guests_are_no_more_than_there_is_room_for) {
  const Quiet quiet;
  FaultyNetwork network(1, {});
  const Key key{};
  Node a("a", 10, 7001, key, network), b("b", 11, 7002, key, network);
  std::deque<Node> guests;
  std::vector<Node*> all{&a, &b};
  std::vector<Answer> answers;
  for (std::uint16_t i = 0; i < 80; ++i) {
    guests.emplace_back("g" + std::to_string(i), 100 + i, static_cast<std::uint16_t>(7100 + i),
                        relay_keys(key), network);
    guests.back().config.hosts["other"] = {"127.0.0.1", 7001};
    all.push_back(&guests.back());
    answers.push_back(ask(guests.back(), "other", {.to_relay = true}));
  }
  BOOST_TEST(go_until(network, all, [&] {
    return std::ranges::all_of(answers, [](const Answer& each) { return each->has_value(); });
  }));
  BOOST_TEST(std::ranges::count_if(answers, [](const Answer& each) { return (*each)->has_value(); }) == 64);
  b.config.hosts["other"] = {"127.0.0.1", 7001};
  const Answer more = ask(b, "other", {});
  BOOST_TEST_REQUIRE(go_until(network, all, [&] { return more->has_value(); }));
  BOOST_TEST((*more)->has_value());
}

// By the name that it gives itself, as a link is up; and whatever another kernel says, what [hosts] says goes
// first.
BOOST_AUTO_TEST_CASE(names_of_linked_and_told_kernels) {
  Two two(4, {});
  std::optional<Result<std::int32_t>> link, back, again;
  two.a.peers.connect("other", [&](const Result<std::int32_t>& at) { link = at; });
  while (!link || !two.b.link) two.go_round();
  BOOST_REQUIRE(link->has_value());
  two.b.peers.connect("a", [&](const Result<std::int32_t>& at) { back = at; });
  while (!back) two.go_round();
  BOOST_REQUIRE(back->has_value());
  BOOST_TEST(static_cast<std::uint32_t>(back->value()) == two.b.link.value());

  EndpointAddress third = two.a.peers.describe({protocol::here, protocol::kernel_endpoint});
  third.identity += 1000;
  third.port = 7003;
  const std::string good = to_text(third);
  const auto known = [&] { return fmt::format("{}", fmt::join(two.b.peers.known(), " ")); };
  const int from = back->value();
  learn_hosts(two.b.peers, from,
              {{"c", "no address"},
               {"", good},
               {"c d", good},
               {std::string(300, 'c'), good},
               {"b", good},
               {"localhost", good}});
  BOOST_TEST(known() == "a b other");
  learn_hosts(two.b.peers, this_host, {{"c", good}});
  BOOST_TEST(known() == "a b other");
  learn_hosts(two.b.peers, from, {{"c", good}, {"other", good}});
  BOOST_TEST(known() == "a b c other");
  two.b.peers.connect("other", [&](const Result<std::int32_t>& at) { again = at; });
  while (!again) two.go_round();
  BOOST_TEST((again->has_value() && again->value() == from));
  BOOST_TEST(hosts_to_tell(two.b.peers, from).empty()); // c is not linked
  for (int i = 0; i < 6000; i += 2000) {
    ToldHosts many;
    for (int host = i; host < i + 2000; ++host) many.push_back({"h" + std::to_string(host), good});
    learn_hosts(two.b.peers, from, many);
  }
  BOOST_TEST(two.b.peers.known().size() < 4200U);
  two.b.peers.hosts_changed();
  BOOST_TEST(known() == "a b other");
}

// Nobody knows the name of b. What listens there is b, or another kernel.
BOOST_AUTO_TEST_CASE(an_address_needs_no_name) {
  for (const bool is_b : {true, false}) {
    Two two(2, {});
    EndpointAddress to_b = two.b.peers.describe({protocol::here, two.b.endpoint});
    BOOST_TEST((to_b.port == 7002 && to_b.hosts == std::vector<std::string>{"127.0.0.1"}));
    if (!is_b) to_b.identity += 1000;
    std::optional<Result<std::int32_t>> answer;
    two.a.peers.connect(to_b, [&](const Result<std::int32_t>& link) { answer = link; });
    while (!answer) two.go_round();
    BOOST_TEST(answer->has_value() == is_b);
    if (is_b)
      BOOST_TEST(static_cast<std::uint32_t>(answer->value()) == two.a.link.value());
    else
      BOOST_TEST(answer->error().text.find("another kernel answers at 127.0.0.1") != std::string::npos);
  }
}

BOOST_AUTO_TEST_SUITE_END()

} // namespace parc::daemon
