// SPDX-License-Identifier: BSD-3-Clause
#include "daemon/link/resolver.hpp"

#include <algorithm>
#include <boost/test/unit_test.hpp>
#include <cerrno>
#include <system_error>
#include <thread>

namespace parc::daemon {
namespace {

struct ResolverFixture {
  Loop loop;
  std::vector<Result<std::vector<Address>>> answers;

  Resolver::Answer answer() {
    return [this](Result<std::vector<Address>> addresses) { answers.push_back(std::move(addresses)); };
  }
  void wait_for(std::size_t count) {
    while (answers.size() < count) {
      event_base_loop(loop.events(), EVLOOP_ONCE);
      loop.end_step();
    }
  }
};

} // namespace

BOOST_FIXTURE_TEST_SUITE(resolver, ResolverFixture)

namespace {

constexpr std::chrono::seconds patience{60};

} // namespace

BOOST_AUTO_TEST_CASE(a_name_is_asked_for_once) {
  int threads = 0;
  Resolver resolver(loop, [&](std::function<void()> work) {
    ++threads;
    std::thread(std::move(work)).detach();
  });
  resolver.resolve("localhost", 1000, patience, answer());
  resolver.resolve("localhost", 2000, patience, answer());
  BOOST_TEST(threads == 1);
  resolver.resolve("no-such-host.invalid", 3000, patience, answer());
  wait_for(3);
  BOOST_TEST(threads <= 2);
  const auto is_unknown = [](const auto& each) { return each.has_error(); };
  BOOST_TEST(std::ranges::count_if(answers, is_unknown) == 1);
  std::uint16_t port = 1000; // in the order of asking
  for (const auto& each : answers) {
    if (is_unknown(each)) {
      BOOST_TEST(each.error().text.find("unknown host no-such-host.invalid: ") == 0u);
    } else {
      BOOST_TEST(each.value().front().port() == port);
      port = 2000;
    }
  }
}

// Threads that do nothing stand for a name server that does not answer.
BOOST_AUTO_TEST_CASE(no_name_waits_for_another) {
  std::vector<std::function<void()>> stuck;
  Resolver resolver(loop, [&](std::function<void()> work) {
    if (stuck.size() < 6)
      stuck.push_back(std::move(work));
    else
      std::thread(std::move(work)).detach();
  });
  for (int i = 0; i < 6; ++i) resolver.resolve(std::to_string(i) + ".invalid", 1, patience, answer());
  BOOST_TEST(stuck.size() == 6u);
  resolver.resolve("localhost", 1000, patience, answer());
  wait_for(1);
  for (auto& work : stuck) std::thread(std::move(work)).detach();
  wait_for(7);
}

BOOST_AUTO_TEST_CASE(whoever_asks_waits_for_so_long_and_no_longer) {
  std::function<void()> stuck;
  Resolver resolver(loop, [&](std::function<void()> work) { stuck = std::move(work); });
  resolver.resolve("localhost", 1, std::chrono::seconds(1), answer());
  resolver.resolve("localhost", 2, patience, answer());
  wait_for(1);
  BOOST_REQUIRE(answers[0].has_error());
  BOOST_TEST(answers[0].error().code == ETIMEDOUT);
  BOOST_TEST(answers[0].error().text.find("within 1 s") != std::string::npos, answers[0].error().text);
  resolver.resolve("localhost", 3, patience, answer());
  std::thread(std::move(stuck)).detach();
  wait_for(3);
  BOOST_TEST(answers[1].value().front().port() == 2);
  BOOST_TEST(answers[2].value().front().port() == 3);
}

BOOST_AUTO_TEST_CASE(that_there_is_no_thread_is_an_answer) {
  bool allowed = false;
  Resolver resolver(loop, [&](std::function<void()> work) {
    if (!allowed) throw std::system_error(EAGAIN, std::generic_category());
    std::thread(std::move(work)).detach();
  });
  resolver.resolve("localhost", 1000, patience, answer());
  BOOST_REQUIRE(answers.size() == 1u);
  BOOST_REQUIRE(answers[0].has_error());
  BOOST_TEST(answers[0].error().code == EAGAIN);
  BOOST_TEST(answers[0].error().text.find("ulimit -u") != std::string::npos);
  allowed = true;
  resolver.resolve("localhost", 1000, patience, answer());
  wait_for(2);
  BOOST_TEST(answers[1].has_value());
}

BOOST_AUTO_TEST_CASE(numeric_addresses_wait_for_nobody) {
  std::function<void()> stuck;
  Resolver resolver(loop, [&](std::function<void()> work) { stuck = std::move(work); });
  resolver.resolve("localhost", 1, patience, answer());
  resolver.resolve("127.0.0.1", 7272, patience, answer());
  resolver.resolve("::1", 7273, patience, answer());
  BOOST_REQUIRE(answers.size() == 2u);
  BOOST_TEST(answers[0].value().front().text() == "127.0.0.1 port 7272");
  BOOST_TEST(answers[1].value().front().text() == "::1 port 7273");
  std::thread(std::move(stuck)).detach();
  wait_for(3);
  BOOST_TEST(answers[2].has_value());
}

BOOST_AUTO_TEST_SUITE_END()

} // namespace parc::daemon
