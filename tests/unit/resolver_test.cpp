// SPDX-License-Identifier: BSD-3-Clause
#include "daemon/link/resolver.hpp"

#include <boost/test/unit_test.hpp>
#include <cerrno>
#include <system_error>
#include <thread>

using parc::Result;
using parc::daemon::Address;
using parc::daemon::Resolver;

namespace {

struct Fixture {
  parc::daemon::EventBase loop{event_base_new()};
  std::vector<Result<std::vector<Address>>> answers;

  Resolver::Answer answer() {
    return [this](Result<std::vector<Address>> addresses) { answers.push_back(std::move(addresses)); };
  }
  void wait_for(std::size_t count) {
    while (answers.size() < count) event_base_loop(loop.get(), EVLOOP_ONCE);
  }
};

} // namespace

BOOST_FIXTURE_TEST_SUITE(resolver, Fixture)

BOOST_AUTO_TEST_CASE(one_thread_answers_all) {
  int threads = 0;
  Resolver resolver(loop.get(), [&](std::function<void()> work) {
    ++threads;
    std::thread(std::move(work)).detach();
  });
  resolver.resolve("localhost", 1000, answer());
  resolver.resolve("localhost", 2000, answer());
  resolver.resolve("no-such-host.invalid", 3000, answer());
  wait_for(3);
  BOOST_TEST(threads == 1);
  BOOST_REQUIRE(answers[0].has_value());
  BOOST_REQUIRE(answers[1].has_value());
  BOOST_TEST(answers[0].value().front().port() == 1000);
  BOOST_TEST(answers[1].value().front().port() == 2000);
  BOOST_REQUIRE(answers[2].has_error());
  BOOST_TEST(answers[2].error().text.find("unknown host no-such-host.invalid: ") == 0u);
}

BOOST_AUTO_TEST_CASE(that_there_is_no_thread_is_an_answer) {
  bool allowed = false;
  Resolver resolver(loop.get(), [&](std::function<void()> work) {
    if (!allowed) throw std::system_error(EAGAIN, std::generic_category());
    std::thread(std::move(work)).detach();
  });
  resolver.resolve("localhost", 1000, answer());
  BOOST_REQUIRE(answers.size() == 1u);
  BOOST_REQUIRE(answers[0].has_error());
  BOOST_TEST(answers[0].error().code == EAGAIN);
  BOOST_TEST(answers[0].error().text.find("ulimit -u") != std::string::npos);
  allowed = true;
  resolver.resolve("localhost", 1000, answer());
  wait_for(2);
  BOOST_TEST(answers[1].has_value());
}

BOOST_AUTO_TEST_CASE(numeric_addresses_wait_for_nobody) {
  std::function<void()> stuck;
  Resolver resolver(loop.get(), [&](std::function<void()> work) { stuck = std::move(work); });
  resolver.resolve("localhost", 1, answer());
  resolver.resolve("127.0.0.1", 7272, answer());
  resolver.resolve("::1", 7273, answer());
  BOOST_REQUIRE(answers.size() == 2u);
  BOOST_TEST(answers[0].value().front().text() == "127.0.0.1 port 7272");
  BOOST_TEST(answers[1].value().front().text() == "::1 port 7273");
  std::thread(std::move(stuck)).detach();
  wait_for(3);
  BOOST_TEST(answers[2].has_value());
}

BOOST_AUTO_TEST_SUITE_END()
