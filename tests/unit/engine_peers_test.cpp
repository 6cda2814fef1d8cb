// SPDX-License-Identifier: BSD-3-Clause
// The table of a server that outlives its clients: it does not grow with all who ever wrote to it.
#include "tests/unit/engine_test.hpp"

#include <set>

BOOST_AUTO_TEST_SUITE(engine_peers)

using namespace parc::sim;

namespace {

constexpr std::uint64_t tag = 5;
constexpr std::size_t kept = Settings().departed_kept;

// Rank 0 of host 0, and programs of another host or of the same one, each of which writes to it once.
struct Server {
  explicit Server(std::uint32_t far, const Settings& settings = Hosts::small_window())
      : hosts({0, far}, settings), clients(far) {
    kept_with_members = kept + 2;
    hosts.settle();
  }
  Engine& engine() { return hosts.engine(0); }
  [[nodiscard]] std::uint64_t endpoint() const { return hosts.endpoint(0); }

  std::uint64_t begin_client() {
    Engine& there = hosts.engine(clients);
    const std::uint64_t client = there.add_endpoint();
    const std::int32_t row = there.add_row(client, hosts.address(clients, 0));
    const std::uint64_t cookie = hosts.record(clients).make();
    (void)there.write(client, {.cookie = cookie,
                               .destination = static_cast<std::uint32_t>(row),
                               .tag = tag,
                               .memory = {out.data(), out.size()}});
    hosts.settle();
    return client;
  }
  std::int32_t take() {
    Op& read = hosts.read(0, -1, tag, in);
    hosts.settle();
    BOOST_REQUIRE((read.finished && read.outcome.fault == Fault::none && in == out));
    std::ranges::fill(in, std::byte{});
    return read.outcome.source;
  }
  // Comes, is read, and goes: its number.
  std::int32_t pass() {
    const std::uint64_t client = begin_client();
    const std::int32_t number = take();
    hosts.engine(clients).leave(client);
    hosts.settle();
    return number;
  }

  Hosts hosts;
  std::uint32_t clients;
  std::size_t kept_with_members;
  Bytes out = pattern(100, 1), in = Bytes(100);
};

} // namespace

BOOST_DATA_TEST_CASE(it_does_not_grow_with_every_client, distances, far) {
  Server server(far);
  std::set<std::int32_t> numbers;
  for (std::size_t i = 0; i < 3 * kept; ++i) numbers.insert(server.pass());
  BOOST_TEST(numbers.size() == 3 * kept); // nobody has another's
  BOOST_TEST(Invariants::rows(server.engine(), server.endpoint()) <= server.kept_with_members + 1);

  const std::int32_t first = *numbers.begin(), last = *numbers.rbegin();
  BOOST_TEST(!server.engine().address(server.endpoint(), first));
  BOOST_TEST(server.engine().has_given(server.endpoint(), first));
  BOOST_TEST(server.engine().address(server.endpoint(), last).has_value());
  BOOST_TEST(!server.engine().has_given(server.endpoint(), last + 1));
  for (const std::int32_t gone : {first, last}) {
    const auto row = static_cast<std::uint32_t>(gone);
    BOOST_TEST(server.hosts.write(0, row, tag, server.out).outcome.fault == Fault::peer);
    BOOST_TEST(server.hosts.read(0, gone, tag, server.in).outcome.fault == Fault::peer);
  }
  Op& anybody = server.hosts.read(0, -1, tag, server.in);
  (void)server.begin_client();
  BOOST_TEST(anybody.finished);
}

// A message that nobody has read, one that a probe has claimed, one on its way, a row that others have noted.
BOOST_DATA_TEST_CASE(what_is_not_over_keeps_its_row, distances, far) {
  Server server(far);
  const std::uint64_t first = server.begin_client();
  ReadRequest look;
  look.ignore = ~std::uint64_t{0};
  look.probe = true;
  look.flags = MessageFlags::claim;
  const std::uint64_t second = server.begin_client();
  Op& probe = server.hosts.post(0, look);
  BOOST_REQUIRE(probe.finished);
  const std::int32_t of_probe = probe.outcome.source;
  const std::int32_t noted = server.pass(); // the second one's: that of the third stays unread
  server.engine().keep_row(server.endpoint(), noted);
  if (far != 0) // a local message ends with its writer
    for (const std::uint64_t client : {first, second}) server.hosts.engine(far).leave(client);
  server.hosts.settle();

  for (std::size_t i = 0; i < 2 * kept; ++i) {
    const std::uint64_t client = server.begin_client();
    ReadRequest newest; // those before it stay unread
    newest.source = server.engine().add_row(
        server.endpoint(), {far == 0 ? here : static_cast<std::int32_t>(server.hosts.link(0, far)), client});
    newest.tag = tag;
    newest.memory = Pieces(server.in.data(), server.in.size());
    BOOST_REQUIRE(server.hosts.post(0, newest).finished);
    server.hosts.engine(far).leave(client);
    server.hosts.settle();
  }
  BOOST_TEST(server.engine().address(server.endpoint(), of_probe).has_value());
  BOOST_TEST(server.engine().address(server.endpoint(), noted).has_value());
  ReadRequest of_claimed;
  of_claimed.claimed = probe.outcome.claim;
  of_claimed.memory = Pieces(server.in.data(), server.in.size());
  Op& late = server.hosts.post(0, of_claimed);
  server.hosts.settle();
  BOOST_TEST((late.finished && late.outcome.fault == Fault::none && late.outcome.source == of_probe));
  const std::int32_t oldest = server.take();
  BOOST_TEST(server.engine().address(server.endpoint(), oldest).has_value());

  for (std::size_t i = 0; i < kept + 8; ++i) (void)server.pass(); // then they go
  BOOST_TEST(!server.engine().address(server.endpoint(), oldest));
  BOOST_TEST(Invariants::rows(server.engine(), server.endpoint()) <= server.kept_with_members + 4);
}

// Their host is lost with all of them at once; who comes later finds room.
BOOST_AUTO_TEST_CASE(clients_whose_host_is_lost) {
  Server server(1);
  for (std::size_t i = 0; i < 2 * kept; ++i) {
    (void)server.begin_client();
    (void)server.take();
  }
  server.engine().break_link(server.hosts.link(0, 1));
  BOOST_TEST(Invariants::rows(server.engine(), server.endpoint()) == 2 * kept + 2);
  for (std::size_t i = 0; i < 2 * kept; ++i)
    BOOST_REQUIRE(server.engine().add_row(server.endpoint(), {here, server.engine().add_endpoint()}) >= 0);
  BOOST_TEST(Invariants::rows(server.engine(), server.endpoint()) == 3 * kept + 2);
}

// A link has room for so many endpoints over there that send, and those that have gone are none of them.
BOOST_AUTO_TEST_CASE(clients_that_have_gone_take_no_place_on_their_link) {
  constexpr std::size_t most_senders = std::size_t{1} << 16;
  Settings settings = Hosts::small_window();
  settings.departed_kept = 2 * most_senders; // as those of many servers together
  Server server(1, settings);
  for (std::size_t i = 0; i < most_senders + 2; ++i) (void)server.pass();
}

BOOST_AUTO_TEST_SUITE_END()
