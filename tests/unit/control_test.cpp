// SPDX-License-Identifier: BSD-3-Clause
#include "daemon/base/control.hpp"

#include "tests/sim/pipe.hpp"

#include <boost/test/unit_test.hpp>
#include <nlohmann/json.hpp>

namespace parc::daemon {
namespace {

// A kernel's Control, and the engine of another kernel, whose bytes arrive when the test says so.
struct Pair : protocol::Listener {
  Loop loop;
  protocol::Engine engine{{}, *this}, peer{{}, *this};
  std::vector<std::string> received;
  Control control{loop, engine, [this](std::uint32_t, const nlohmann::json& message, const std::string&) {
                    received.push_back(message.value("kind", ""));
                  }};
  std::uint32_t link = engine.add_link({4096, 1, 2}), back = peer.add_link({4096, 2, 1});
  sim::Pipe there, back_again;

  Pair() { // each has said what it has of the other: nothing
    protocol::Refusal refusal = protocol::Refusal::none;
    while (back_again.fill(engine, link, 4096) + back_again.drain(peer, back, 4096, 64, refusal) != 0)
      continue;
  }

  void begun(std::uint64_t, const protocol::Outcome&) override {}
  void progressed(std::uint64_t, const protocol::Progress&) override {}
  void finished(std::uint64_t cookie, const protocol::Outcome& outcome) override {
    if (Cookie(cookie).owner() == Cookie::Owner::control_read) control.finished(Cookie(cookie), outcome);
  }
  void drained(std::uint64_t) override {}

  void write(std::string& kept, const std::string& kind, std::size_t more) {
    const std::string text = nlohmann::json({{"kind", kind}}).dump();
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

BOOST_AUTO_TEST_SUITE(control)

// The long one's rest waits for an answer, the short one is here whole; neither is delivered when the link is
// no more, and neither takes room.
BOOST_FIXTURE_TEST_CASE(nothing_is_left_of_what_came_behind_a_message_that_was_cut_off, Pair) {
  control.listen(link, "other");
  std::string last, first, second;
  write(last, "first", 10);
  write(first, "long", 3 << 20);
  write(second, "short", 10);
  arrive();
  BOOST_TEST(received == std::vector<std::string>{"first"}, boost::test_tools::per_element());
  BOOST_TEST(engine.link(link).unmatched == 1u);
  engine.break_link(link);
  loop.end_step();
  BOOST_TEST(received.size() == 1u);
  BOOST_TEST(engine.pool_in_use() == 0u);
}

BOOST_FIXTURE_TEST_CASE(nothing_is_left_of_a_link_that_was_lost_before_anybody_listened, Pair) {
  std::string only;
  write(only, "short", 10);
  arrive();
  engine.break_link(link);
  control.listen(link, "other");
  loop.end_step();
  BOOST_TEST(received.empty());
  BOOST_TEST(engine.pool_in_use() == 0u);
}

BOOST_AUTO_TEST_SUITE_END()

} // namespace parc::daemon
