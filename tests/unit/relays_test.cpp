// SPDX-License-Identifier: BSD-3-Clause
// A relay between two kernels that are played: what it gives them, and what it does not take.
#include "daemon/relay/relays.hpp"

#include "tests/sim/pipe.hpp"

#include <boost/test/unit_test.hpp>
#include <deque>

namespace parc::daemon {
namespace {

// One end of a link between two kernels, without sockets.
struct LinkEnd : protocol::Listener {
  Loop loop;
  protocol::Engine engine{{}, *this};
  std::string nonsense;
  Post post{loop, engine, [this](std::uint32_t, const Error& why) { nonsense = why.text; }};

  void begun(std::uint64_t, const protocol::Outcome&) override {}
  void progressed(std::uint64_t, const protocol::Progress&) override {}
  void finished(std::uint64_t cookie, const protocol::Outcome& outcome) override {
    post.finished(Cookie(cookie), outcome);
  }
  void drained(std::uint64_t) override {}
};

class NoSockets final : public StreamMaker {
public:
  Result<std::unique_ptr<Stream>> dial(const Address&, KeyUse) override { return error(EHOSTUNREACH, ""); }
  void accept_for(Acceptance) override {}
  void resume() override {}
};

// Who asks, the relay, and whom it is asked for.
struct ThreeKernels {
  LinkEnd asker, relay, other;
  NoSockets sockets;
  Relays relays{relay.loop, relay.post, sockets};
  std::uint32_t to_relay = asker.engine.add_link({4096, 1, 2}),
                from_other = other.engine.add_link({4096, 3, 2});
  std::uint32_t to_asker = relay.engine.add_link({4096, 2, 1}),
                to_other = relay.engine.add_link({4096, 2, 3});
  std::array<sim::Pipe, 4> pipes;
  std::deque<kernel::RelayOpened> opened; // heard by who asks, in turn
  std::deque<kernel::RelayClose> closed;
  std::deque<std::uint64_t> taken, streams;
  std::uint64_t came = 0, numbers = 0;
  bool may_ask = true;
  std::uint64_t window_of_other = kernel::most_relay_window;
  bool other_reads = true;
  std::vector<std::string> heard; // by the other one, in turn

  ThreeKernels() {
    asker.post.on<kernel::RelayOpened>(
        [this](std::int32_t, const auto& message) { opened.push_back(message); });
    asker.post.on<kernel::RelayClose>(
        [this](std::int32_t, const auto& message) { closed.push_back(message); });
    asker.post.on<kernel::RelayTaken>(
        [this](std::int32_t, const auto& message) { taken.push_back(message.bytes); });
    other.post.on<kernel::RelayOpen>([this](std::int32_t from, const kernel::RelayOpen& message) {
      BOOST_TEST(message.from <= 1u); // 0: the relay itself
      streams.push_back(message.stream);
      other.post.send(from, kernel::RelayOpened{.stream = message.stream,
                                                .window = std::min(message.window, window_of_other)});
    });
    other.post.on<kernel::RelayBytes>([this](std::int32_t, const auto& message) {
      came += message.payload.size();
      heard.push_back(fmt::format("bytes of {}", message.stream));
    });
    other.post.on<kernel::RelayClose>([this](std::int32_t, const auto& message) {
      heard.push_back(fmt::format("end of {}", message.stream));
    });
    relays.begin({.to = [this](std::uint64_t identity, const std::string&) -> std::optional<std::int32_t> {
                    if (identity != 3) return {};
                    return static_cast<std::int32_t>(to_other);
                  },
                  .all = [this] { return std::vector{static_cast<std::int32_t>(to_other)}; },
                  .name = [](std::int32_t) { return "x"; },
                  .identity =
                      [this](std::int32_t link) {
                        return link == static_cast<std::int32_t>(to_asker) ? std::uint64_t{1}
                                                                           : std::uint64_t{3};
                      },
                  .is_near = [](std::int32_t) { return true; },
                  .connect = [](const std::string&, std::uint64_t, const Relays::Links::Connected&) {},
                  .may_ask = [this](std::int32_t) { return may_ask; }});
    asker.post.listen(to_relay);
    relay.post.listen(to_asker);
    relay.post.listen(to_other);
    other.post.listen(from_other);
  }

  bool move(sim::Pipe& pipe, LinkEnd& from, std::uint32_t out, LinkEnd& to, std::uint32_t in) {
    constexpr std::size_t most = std::size_t{1} << 20;
    protocol::Refusal refusal = protocol::Refusal::none;
    const std::size_t moved =
        pipe.fill(from.engine, out, most) + pipe.drain(to.engine, in, most, 64, refusal);
    BOOST_REQUIRE((refusal == protocol::Refusal::none));
    return moved != 0;
  }
  void settle() {
    bool goes_on = true;
    while (goes_on) {
      goes_on = false;
      for (LinkEnd* side : {&asker, &relay, &other}) goes_on |= side->loop.end_step() != 0;
      goes_on |= move(pipes[0], asker, to_relay, relay, to_asker);
      goes_on |= move(pipes[1], relay, to_asker, asker, to_relay);
      if (other_reads) goes_on |= move(pipes[2], relay, to_other, other, from_other);
      goes_on |= move(pipes[3], other, from_other, relay, to_other);
      for (LinkEnd* side : {&asker, &relay, &other})
        if (!goes_on && side->engine.owes_acknowledgement()) {
          side->engine.flush_acknowledgements();
          goes_on = true;
        }
    }
    BOOST_TEST((asker.nonsense.empty() && relay.nonsense.empty() && other.nonsense.empty()));
  }
  template <class Message> void ask(Message message) {
    asker.post.send(static_cast<std::int32_t>(to_relay), std::move(message));
    settle();
  }
  // Two connections have more to say than there is room for at the other one, which takes nothing.
  void fill() {
    other_reads = true;
    (void)open();
    (void)open();
    other_reads = false;
    for (std::uint64_t stream = numbers - 1; stream <= numbers; ++stream)
      for (std::size_t i = 0; i < 15; ++i)
        ask(kernel::RelayBytes{.stream = stream, .begun = 1, .payload = std::string(100'000, 'x')});
  }
  std::uint64_t open(std::uint64_t window = kernel::most_relay_window) { // the window that is given
    ask(kernel::RelayOpen{.stream = ++numbers, .to = 3, .window = window});
    BOOST_TEST_REQUIRE(opened.size() == 1u);
    BOOST_TEST(opened.front().stream == numbers);
    const std::uint64_t given = opened.front().window;
    opened.clear();
    return given;
  }
};

} // namespace

BOOST_FIXTURE_TEST_SUITE(relays, ThreeKernels)

// All of them have room for something, and none of them for what all could not have.
BOOST_AUTO_TEST_CASE(a_thousand_connections_have_their_memory) {
  BOOST_TEST(open() == kernel::most_relay_window);
  std::uint64_t all = 2 * kernel::most_relay_window;
  for (int i = 1; i < 1024; ++i) {
    const std::uint64_t window = open();
    BOOST_TEST_REQUIRE(window >= kernel::least_relay_window);
    all += 2 * window;
  }
  BOOST_TEST(all <= std::uint64_t{768} << 20);
  ask(kernel::RelayOpen{.stream = ++numbers, .to = 3});
  BOOST_TEST(opened.empty());
  BOOST_TEST_REQUIRE(closed.size() == 1u);
  BOOST_TEST(closed.front().text == "too many connections are relayed there");
  for (std::uint64_t stream = 1; stream <= 1024; ++stream)
    ask(kernel::RelayClose{.stream = stream, .begun = 1, .text = "over"});
  BOOST_TEST(relays.none());
  BOOST_TEST(open() == kernel::most_relay_window);
}

BOOST_AUTO_TEST_CASE(the_smaller_window_counts) {
  BOOST_TEST(open(200'000) == 200'000u);
}

// Nor do many small messages take more than few long ones.
BOOST_AUTO_TEST_CASE(who_sends_more_than_it_may_is_cut_off) {
  for (const std::size_t size : {std::size_t{1}, std::size_t{100'000}}) {
    const std::uint64_t window = open();
    const std::uint64_t most = window / kernel::cost_of_relayed(size);
    for (std::uint64_t i = 0; i < most; ++i)
      asker.post.send(static_cast<std::int32_t>(to_relay),
                      kernel::RelayBytes{.stream = numbers, .begun = 1, .payload = std::string(size, 'x')});
    settle();
    BOOST_TEST(came == most * size);
    BOOST_TEST(closed.empty());
    // What the other end has taken may come again.
    const std::uint64_t told = most / 2 * kernel::cost_of_relayed(size);
    other.post.send(static_cast<std::int32_t>(from_other),
                    kernel::RelayTaken{.stream = streams.back(), .bytes = told});
    settle();
    BOOST_TEST(taken == std::deque<std::uint64_t>{told}, boost::test_tools::per_element());
    for (std::uint64_t i = 1; i < most / 2; ++i)
      asker.post.send(static_cast<std::int32_t>(to_relay),
                      kernel::RelayBytes{.stream = numbers, .begun = 1, .payload = std::string(size, 'x')});
    ask(kernel::RelayBytes{.stream = numbers, .begun = 1, .payload = std::string(size, 'x')});
    BOOST_TEST(closed.empty());
    ask(kernel::RelayBytes{.stream = numbers, .begun = 1, .payload = std::string(size, 'x')});
    BOOST_TEST_REQUIRE(closed.size() == 1u);
    BOOST_TEST(closed.front().text == "it sends more than it may");
    BOOST_TEST(relays.none());
    closed.clear();
    taken.clear();
    came = 0;
  }
}

BOOST_AUTO_TEST_CASE(the_other_ends_window_counts) {
  window_of_other = 150'000;
  BOOST_TEST(open() == 150'000u);
}

// Where the other end takes nothing for a while: all of it, in order, and the end behind it.
BOOST_AUTO_TEST_CASE(an_end_leaves_behind_what_was_said) {
  fill();
  ask(kernel::RelayClose{.stream = numbers, .begun = 1, .text = "over"});
  const std::string first = fmt::format("{}", streams.back());
  ask(kernel::RelayOpen{.stream = ++numbers, .to = 3});
  ask(kernel::RelayClose{.stream = numbers, .begun = 1, .text = "over"});
  BOOST_TEST(heard.empty());
  other_reads = true;
  settle();
  BOOST_TEST(came == 3'000'000u);
  const auto end = std::ranges::find(heard, "end of " + first);
  BOOST_TEST((end - heard.begin() >= 15));
  BOOST_TEST((std::ranges::count(heard, "bytes of " + first) == 15));
}

// What waits is for nobody when the other end has gone.
BOOST_AUTO_TEST_CASE(what_nobody_takes_is_not_kept) {
  fill();
  other.post.send(static_cast<std::int32_t>(from_other),
                  kernel::RelayClose{.stream = streams.back(), .text = "gone"});
  settle();
  BOOST_TEST_REQUIRE(closed.size() == 1u);
  BOOST_TEST(closed.front().text == "gone");
  other_reads = true;
  settle();
  BOOST_TEST(came < 3'000'000u); // some was under way
  BOOST_TEST(came >= 1'500'000u);
}

// Its own connection over a link that is full of what it relays has its turn, too.
// A link to it may be up and lead nowhere any more: that is why a relay is sought.
BOOST_AUTO_TEST_CASE(a_kernel_is_not_asked_to_relay_to_itself) {
  for (const Address& itself : {relayed_address(3, "z"), relayed_address(0, "x")}) {
    const auto stream = relays.dial(itself, KeyUse::link).value();
    settle();
    BOOST_TEST(stream->opened() == ENETUNREACH);
  }
  BOOST_TEST(streams.empty());
}

BOOST_AUTO_TEST_CASE(a_relay_that_is_an_end) {
  const auto stream = relays.dial(relayed_address(4, "y"), KeyUse::link).value();
  settle();
  BOOST_TEST_REQUIRE(stream->opened() == 0);
  fill();
  std::string text(1000, 'y');
  const iovec part{text.data(), text.size()};
  BOOST_TEST(stream->writable());
  BOOST_TEST(stream->write({&part, 1}).bytes == text.size());
  settle();
  BOOST_TEST(!stream->writable()); // it waits its turn
  other_reads = true;
  settle();
  BOOST_TEST(stream->writable());
  BOOST_TEST(came == 3'001'000u);
}

BOOST_AUTO_TEST_CASE(who_does_not_answer_is_not_asked_without_end) {
  other_reads = false;
  std::size_t refused = 0;
  for (int i = 0; i < 3000; ++i) {
    ask(kernel::RelayOpen{.stream = ++numbers, .to = 3});
    ask(kernel::RelayClose{.stream = numbers, .begun = 1, .text = "over"});
    refused += closed.size();
    closed.clear();
  }
  BOOST_TEST(refused == 3000u - 1024u);
  other_reads = true;
  settle();
  BOOST_TEST(streams.size() == 1024u);
  opened.clear();
  (void)open();
}

// One end cannot make the relay say more to the other than there is to say.
BOOST_AUTO_TEST_CASE(what_is_said_again_and_again_is_not_passed_on) {
  const std::uint64_t window = open();
  for (int i = 0; i < 100; ++i)
    other.post.send(static_cast<std::int32_t>(from_other), kernel::RelayOpened{.stream = streams.back()});
  settle();
  BOOST_TEST(opened.empty());
  ask(kernel::RelayBytes{.stream = numbers, .begun = 1, .payload = std::string(1000, 'x')});
  for (int i = 0; i < 1000; ++i)
    other.post.send(static_cast<std::int32_t>(from_other),
                    kernel::RelayTaken{.stream = streams.back(), .bytes = 1});
  settle();
  BOOST_TEST(taken.empty());
  BOOST_TEST(window == kernel::most_relay_window);
}

BOOST_AUTO_TEST_CASE(who_may_not_ask_is_told) {
  may_ask = false;
  ask(kernel::RelayOpen{.stream = 1, .to = 3});
  BOOST_TEST_REQUIRE(closed.size() == 1u);
  BOOST_TEST(closed.front().text == "it relays for nobody who has only a relay key");
  may_ask = true;
  ask(kernel::RelayOpen{.stream = 2, .to = 4});
  BOOST_TEST(closed.back().text == "no link leads there");
}

BOOST_AUTO_TEST_SUITE_END()

} // namespace parc::daemon
