// SPDX-License-Identifier: BSD-3-Clause
// A Dialer alone, in virtual time, whose dials all fail at once: who hears of that, and when.
#include "daemon/link/dialer.hpp"

#include <boost/test/unit_test.hpp>
#include <cerrno>
#include <spdlog/spdlog.h>

namespace parc::daemon {
namespace {

class LoneDialer : protocol::Listener {
public:
  LoneDialer() {
    config.name = "a";
    config.connect_timeout_s = 2;
    config.hosts["b"] = {"127.0.0.1", 7300};
    spdlog::set_level(spdlog::level::off);
  }
  ~LoneDialer() override { spdlog::set_level(level); }

  Result<void> refuse(const Address& to, const PendingLink::Purpose& why) {
    dialed.push_back(to.text());
    last = why;
    if (code == 0) return success(); // nobody answers
    return error(code, "{} refuses", to.text());
  }
  Dialer::Connected heard() {
    return [this](const Result<std::int32_t>& result) {
      answers.push_back(result ? std::to_string(result.value()) : result.error().text);
    };
  }
  void pass(std::chrono::milliseconds span) {
    time += span;
    loop.ring();
    loop.end_step();
  }

  const spdlog::level::level_enum level = spdlog::get_level();
  Loop::Time time{};
  Loop loop{&time};
  Config config;
  protocol::Engine engine{{}, *this};
  Locator locator{loop, nullptr};
  HostDirectory directory{config};
  HostSessions sessions{{.loop = loop,
                         .engine = engine,
                         .config = config,
                         .locator = locator,
                         .directory = directory,
                         .self = 1,
                         .dial = [](const Address&, const PendingLink::Purpose&) { return success(); },
                         .keys_are = [] { return KeyUse::link; }},
                        {.link_up = [](std::uint32_t) {},
                         .link_lost = [](std::uint32_t) {},
                         .ping = [](std::uint32_t, std::uint64_t) {},
                         .ask_streams = [](std::uint32_t, unsigned) {}}};
  Dialer dialer{
      {.loop = loop,
       .locator = locator,
       .config = config,
       .directory = directory,
       .sessions = sessions,
       .dial = [this](const Address& to, const PendingLink::Purpose& why) { return refuse(to, why); },
       .answered = [this](std::uint64_t) { return answered; },
       .drop = [](std::uint64_t) {}}};
  bool answered = false;
  int code = ECONNREFUSED;
  std::vector<std::string> dialed, answers;
  PendingLink::Purpose last;

private:
  void begun(std::uint64_t, const protocol::Outcome&) override {}
  void progressed(std::uint64_t, const protocol::Progress&) override {}
  void finished(std::uint64_t, const protocol::Outcome&) override {}
  void drained(std::uint64_t) override {}
};

} // namespace

BOOST_FIXTURE_TEST_SUITE(dialer, LoneDialer)

using namespace std::chrono_literals;

BOOST_AUTO_TEST_CASE(who_is_in_haste_hears_at_once) {
  dialer.reach("b", heard(), {.in_haste = true});
  BOOST_TEST(answers.empty()); // an actor may be in the middle of something
  loop.end_step();
  BOOST_TEST(answers.size() == 1U);
  BOOST_TEST(answers.front() == "cannot reach host b: 127.0.0.1 port 7300 refuses");
  BOOST_TEST(dialed.size() == 1U);
  BOOST_TEST(last.host == "b");
  BOOST_TEST(last.named);
}

// A kernel that is only about to listen is there in the next round, or the one after.
BOOST_AUTO_TEST_CASE(the_patient_hear_after_the_last_round) {
  dialer.reach("b", heard(), {});
  dialer.reach("b", heard(), {}); // waits for the same
  loop.end_step();
  BOOST_TEST(dialed.size() == 1U);
  for (int i = 0; i < 14; ++i) pass(100ms);
  BOOST_TEST(answers.empty());
  BOOST_TEST(dialed.size() > 4U);
  BOOST_TEST(dialed.size() < 12U);
  for (int i = 0; i < 11; ++i) pass(100ms);
  BOOST_TEST(answers.size() == 2U);
  const std::size_t rounds = dialed.size();
  for (int i = 0; i < 20; ++i) pass(100ms);
  BOOST_TEST(dialed.size() == rounds);
}

// No other round would find anything else.
BOOST_AUTO_TEST_CASE(what_will_not_change_is_not_tried_again) {
  code = EHOSTUNREACH;
  dialer.reach("b", heard(), {});
  loop.end_step();
  BOOST_TEST(answers.size() == 1U);
  BOOST_TEST(dialed.size() == 1U);
}

// It is waited for, and not dialed.
BOOST_AUTO_TEST_CASE(who_has_to_dial_is_not_dialed) {
  config.hosts["b"].dials = Dials::out;
  dialer.reach("b", heard(), {.in_haste = true});
  loop.end_step();
  BOOST_TEST(answers.size() == 1U);
  BOOST_TEST(answers.front() == "cannot reach host b: [hosts] says that nobody can dial it, and a host that "
                                "calls itself b has not dialed this one");
  config.hosts["a"] = {.address = "127.0.0.1", .dials = Dials::in};
  dialer.reach("z", heard(), {});
  dialer.reach(EndpointAddress{.identity = 9, .number = 1, .name = 0, .port = 7301, .hosts = {"10.0.0.1"}},
               heard(), true);
  for (int i = 0; i < 15; ++i) pass(100ms);
  BOOST_TEST(answers.size() == 1U);
  for (int i = 0; i < 10; ++i) pass(100ms);
  BOOST_TEST(answers.size() == 3U);
  BOOST_TEST(
      answers.back().ends_with("[hosts] says that this host dials nobody, and it has not dialed this one"));
  BOOST_TEST(dialed.empty());
}

BOOST_AUTO_TEST_CASE(the_addresses_of_a_kernel_in_turn) {
  dialer.reach(
      EndpointAddress{.identity = 9, .number = 1, .name = 0, .port = 7301, .hosts = {"10.0.0.1", "10.0.0.2"}},
      heard(), true);
  const std::vector<std::string> both{"10.0.0.1 port 7301", "10.0.0.2 port 7301"};
  BOOST_TEST(dialed == both, boost::test_tools::per_element());
  BOOST_TEST(!last.named);
}

// Who does not answer holds up no other address.
BOOST_AUTO_TEST_CASE(the_next_address_beside_a_silent_one) {
  code = 0;
  dialer.reach(
      EndpointAddress{
          .identity = 9, .number = 1, .name = 0, .port = 7301, .hosts = {"10.0.0.1", "10.0.0.2", "10.0.0.3"}},
      heard(), true);
  pass(200ms);
  BOOST_TEST(dialed.size() == 1U);
  pass(100ms);
  BOOST_TEST(dialed.size() == 2U);
  pass(300ms);
  BOOST_TEST(dialed.size() == 3U);
  for (int i = 0; i < 10; ++i) pass(100ms);
  BOOST_TEST(dialed.size() == 3U);
  BOOST_TEST(answers.empty());
}

BOOST_AUTO_TEST_CASE(no_other_address_beside_one_that_answers) {
  code = 0;
  answered = true;
  dialer.reach(
      EndpointAddress{.identity = 9, .number = 1, .name = 0, .port = 7301, .hosts = {"10.0.0.1", "10.0.0.2"}},
      heard(), true);
  for (int i = 0; i < 10; ++i) pass(100ms);
  BOOST_TEST(dialed.size() == 1U);
}

BOOST_AUTO_TEST_CASE(a_kernel_that_listens_nowhere) {
  dialer.reach(EndpointAddress{.identity = 9, .number = 1, .name = 0, .port = 0, .hosts = {"10.0.0.1"}},
               heard(), true);
  loop.end_step();
  BOOST_TEST(dialed.empty());
  BOOST_TEST(answers.size() == 1U);
  BOOST_TEST(answers.front().starts_with("cannot reach "), answers.front());
}

BOOST_AUTO_TEST_SUITE_END()

} // namespace parc::daemon
