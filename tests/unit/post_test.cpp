// SPDX-License-Identifier: BSD-3-Clause
#include "daemon/base/post.hpp"

#include "control/link_messages.hpp"
#include "tests/sim/pipe.hpp"

#include <boost/test/unit_test.hpp>
#include <nlohmann/json.hpp>

namespace parc::daemon {

BOOST_AUTO_TEST_SUITE(post)

namespace {

// A kernel's Post, and the engine of another kernel, whose bytes arrive when the test says so.
struct Pair : protocol::Listener {
  Loop loop;
  protocol::Engine engine{{}, *this}, peer{{}, *this};
  std::vector<std::uint64_t> received; // jobs
  std::vector<std::string> nonsense;
  Post post{loop, engine, [this](std::uint32_t broken, const Error& why) {
              BOOST_TEST(broken == link);
              nonsense.push_back(why.text);
            }};
  std::uint32_t link = engine.add_link({4096, 1, 2}), back = peer.add_link({4096, 2, 1});
  sim::Pipe there, back_again;

  Pair() {
    post.on<kernel::Input>([this](std::int32_t from, const kernel::Input& message) {
      BOOST_TEST(from == static_cast<std::int32_t>(link));
      received.push_back(message.job);
    });
    // Each has said what it has of the other: nothing.
    protocol::Refusal refusal = protocol::Refusal::none;
    while (back_again.fill(engine, link, 4096) + back_again.drain(peer, back, 4096, 64, refusal) != 0)
      continue;
  }

  void begun(std::uint64_t, const protocol::Outcome&) override {}
  void progressed(std::uint64_t, const protocol::Progress&) override {}
  void finished(std::uint64_t cookie, const protocol::Outcome& outcome) override {
    if (Cookie(cookie).owner() == Cookie::Owner::control_read) post.finished(Cookie(cookie), outcome);
  }
  void drained(std::uint64_t) override {}

  void write(std::string& kept, std::uint64_t job, std::size_t more) {
    write(kept, control::to_json(kernel::Input{.job = job}).dump(), more);
  }
  void write(std::string& kept, const std::string& text, std::size_t more) {
    const auto length = static_cast<std::uint32_t>(text.size());
    kept.assign(reinterpret_cast<const char*>(&length), sizeof length);
    kept += text + std::string(more, 'x');
    peer.write(peer.kernel(), {.cookie = Cookie::of_control_write(1).word(),
                               .destination = back,
                               .space = protocol::Space::kernels,
                               .memory = {reinterpret_cast<std::byte*>(kept.data()), kept.size()}});
  }
  // What the other kernel says arrives; its own hears nothing.
  void arrive() {
    constexpr std::size_t most = std::size_t{1} << 20;
    protocol::Refusal refusal = protocol::Refusal::none;
    while (there.fill(peer, back, most) + there.drain(engine, link, most, 64, refusal) != 0) loop.end_step();
    BOOST_TEST((refusal == protocol::Refusal::none));
  }
};

} // namespace

// The long one's rest waits for an answer, the short one is here whole; neither is delivered when the link is
// no more, and neither takes room.
BOOST_FIXTURE_TEST_CASE(nothing_is_left_of_what_came_behind_a_message_that_was_cut_off, Pair) {
  post.listen(link);
  std::string last, first, second;
  write(last, 1, 10);
  write(first, 2, 3 << 20);
  write(second, 3, 10);
  arrive();
  BOOST_TEST(received == std::vector<std::uint64_t>{1}, boost::test_tools::per_element());
  BOOST_TEST(engine.link(link).unmatched == 1u);
  engine.break_link(link);
  loop.end_step();
  BOOST_TEST(received.size() == 1u);
  BOOST_TEST(engine.pool_in_use() == 0u);
}

BOOST_FIXTURE_TEST_CASE(nothing_is_left_of_a_link_that_was_lost_before_anybody_listened, Pair) {
  std::string only;
  write(only, 1, 10);
  arrive();
  engine.break_link(link);
  post.listen(link);
  loop.end_step();
  BOOST_TEST(received.empty());
  BOOST_TEST(engine.pool_in_use() == 0u);
}

// Nor is what comes behind it.
BOOST_AUTO_TEST_CASE(what_makes_no_sense_is_delivered_to_nobody) {
  const std::vector<std::pair<std::string, std::string>> all{
      {R"({"kind":"input","job":1})", "a message \"input\" has no \"end\""},
      {R"({"kind":"input","job":1,"end":2})", "the \"end\" of a message \"input\" makes no sense"},
      {R"({"kind":"input","job":1,"end":0,"rank":0})",
       "a message \"input\" has a \"rank\", which it should not have"},
      {R"({"kind":"input","job":1,"job":1,"end":0})",
       "what is said in a message makes no sense: it has more than one \"job\""},
      {R"({"kind":"nonsense"})", "there is no message \"nonsense\""},
      {R"({"kind":"finish","job":1})", "there is no message \"finish\""}, // which nobody here takes
      {"[1]", "what is said in a message makes no sense: it is not a JSON object"}};
  for (const auto& [text, why] : all) {
    Pair pair;
    pair.post.listen(pair.link);
    std::string before, nonsense, behind;
    pair.write(before, 6, 3);
    pair.write(nonsense, text, 0);
    pair.write(behind, 7, 3);
    pair.arrive();
    BOOST_TEST(pair.received == std::vector<std::uint64_t>{6}, boost::test_tools::per_element());
    BOOST_TEST(pair.nonsense == std::vector<std::string>{why}, boost::test_tools::per_element());
  }
}

// What makes this kernel answer, and takes no answer, is let go; what a connection's window bounds is not.
BOOST_FIXTURE_TEST_CASE(a_relay_that_takes_no_answers, Pair) {
  post.listen(link, true);
  for (std::size_t i = 0; i < 2 * Post::most_answers; ++i)
    post.send(static_cast<std::int32_t>(link), kernel::RelayBytes{.stream = 1, .begun = 0, .payload = "x"});
  for (std::size_t i = 1; i < Post::most_answers; ++i)
    post.send(static_cast<std::int32_t>(link), kernel::Pong{.number = i});
  loop.end_step();
  BOOST_TEST(nonsense.empty());
  post.send(static_cast<std::int32_t>(link), kernel::Pong{.number = Post::most_answers});
  loop.end_step();
  BOOST_TEST(nonsense == std::vector<std::string>{"it takes no answers"}, boost::test_tools::per_element());
}

// Nothing but what relays say goes over it, in either direction.
BOOST_FIXTURE_TEST_CASE(a_link_that_is_only_for_relaying, Pair) {
  std::vector<std::uint64_t> taken;
  post.on<kernel::RelayTaken>(
      [&taken](std::int32_t, const kernel::RelayTaken& message) { taken.push_back(message.bytes); });
  post.listen(link, true);
  std::string relayed, other;
  write(relayed, control::to_json(kernel::RelayTaken{.stream = 1, .begun = 0, .bytes = 5}).dump(), 0);
  write(other, 6, 3);
  arrive();
  BOOST_TEST(taken == std::vector<std::uint64_t>{5}, boost::test_tools::per_element());
  BOOST_TEST(received.empty());
  BOOST_TEST(nonsense ==
                 std::vector<std::string>{"it has proved a relay key alone, and sent a message \"input\""},
             boost::test_tools::per_element());
  post.send(static_cast<std::int32_t>(link), kernel::Input{.job = 1});
  BOOST_TEST(engine.link(link).fresh.empty());
  post.send(static_cast<std::int32_t>(link), kernel::RelayTaken{.stream = 1, .begun = 0, .bytes = 5});
  BOOST_TEST(!engine.link(link).fresh.empty());
}

BOOST_AUTO_TEST_SUITE_END()

} // namespace parc::daemon
