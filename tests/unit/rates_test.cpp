// SPDX-License-Identifier: BSD-3-Clause
#include "tools/parc/view/rates.hpp"

#include <boost/test/unit_test.hpp>

namespace parc::tools {

BOOST_AUTO_TEST_SUITE(rates)

namespace {

using namespace std::chrono_literals;

Look look_at(std::chrono::milliseconds at) {
  Look look{.at = std::chrono::steady_clock::time_point(at), .view = {}, .threads = {}};
  look.view.kernel.identity = 42;
  look.view.kernel.pid = 1;
  return look;
}

ProgramView program(std::uint64_t pid) {
  ProgramView view;
  view.counted.pid = pid;
  view.counted.job = 7;
  view.counted.segment = pid + 1000;
  view.seen.joined = true;
  return view;
}

} // namespace

BOOST_AUTO_TEST_CASE(a_link_has_what_was_moved_in_a_second) {
  Look before = look_at(1000ms), after = look_at(1500ms);
  before.view.kernel.links = {{.peer = "b",
                               .identity = 9,
                               .bytes_in = 100,
                               .bytes_out = 200,
                               .since_s = 1,
                               .messages_in = 1,
                               .messages_out = 2,
                               .resent_bytes = 10,
                               .stalls = 3}};
  after.view.kernel.links = {{.peer = "b",
                              .identity = 9,
                              .bytes_in = 1100,
                              .bytes_out = 200,
                              .since_s = 1,
                              .messages_in = 6,
                              .messages_out = 4,
                              .resent_bytes = 30,
                              .stalls = 4}};
  const Rates rates = rates_between(before, after);
  BOOST_REQUIRE(rates.links.size() == 1U);
  BOOST_TEST(rates.links[0].link.peer == "b");
  BOOST_TEST(rates.links[0].in.bytes == 2000);
  BOOST_TEST(rates.links[0].in.messages == 10);
  BOOST_TEST(rates.links[0].out.bytes == 0);
  BOOST_TEST(rates.links[0].out.messages == 4);
  BOOST_TEST(rates.links[0].stalls == 2);
  BOOST_TEST(rates.links[0].resent_bytes == 40);
}

// Its host's kernel was started again: the figures of the one before are not its.
BOOST_AUTO_TEST_CASE(another_link_to_the_same_host_begins_anew) {
  Look before = look_at(0ms), after = look_at(1000ms);
  before.view.kernel.links = {{.peer = "b", .identity = 9, .bytes_in = 100}};
  after.view.kernel.links = {{.peer = "b", .identity = 10, .bytes_in = 5000}};
  BOOST_TEST(rates_between(before, after).links.at(0).in.bytes == 0);
}

BOOST_AUTO_TEST_CASE(a_program_has_what_goes_through_the_kernel_and_what_does_not) {
  Look before = look_at(0ms), after = look_at(2000ms);
  before.view.programs = {program(5)};
  ProgramView now = program(5);
  now.counted.messages_out = 10;
  now.counted.bytes_out = 1000;
  now.counted.messages_in = 2;
  now.counted.bytes_in = 20;
  now.seen.neighbours.messages = 4;
  now.seen.neighbours.bytes = 400;
  now.seen.neighbours.received = 6;
  now.seen.neighbours.received_bytes = 60;
  now.seen.waits.rested = 8;
  after.view.programs = {now};
  before.threads[5] = {.ran_ns = 1'000'000'000, .delayed_ns = 1'000'000, .runs = 100};
  after.threads[5] = {.ran_ns = 2'000'000'000, .delayed_ns = 2'000'000, .runs = 300};
  const Rates rates = rates_between(before, after);
  BOOST_REQUIRE(rates.programs.size() == 1U);
  BOOST_TEST(rates.programs[0].out.messages == 7);
  BOOST_TEST(rates.programs[0].out.bytes == 700);
  BOOST_TEST(rates.programs[0].in.messages == 4);
  BOOST_TEST(rates.programs[0].in.bytes == 40);
  BOOST_TEST(rates.programs[0].waits == 4);
  BOOST_TEST(rates.programs[0].thread.core == 0.5);
  BOOST_TEST(rates.programs[0].thread.delay_us == 5);
}

// What the kernel and its programs take is not others', and who has come or gone meanwhile spoils the sum.
BOOST_AUTO_TEST_CASE(others_take_what_the_kernel_and_its_programs_do_not) {
  Look before = look_at(0ms), after = look_at(2000ms);
  before.view.programs = after.view.programs = {program(5)};
  before.busy_ns = 10'000'000'000, before.own_ns = 1'000'000'000;
  after.busy_ns = 13'000'000'000, after.own_ns = 2'000'000'000;
  BOOST_TEST(rates_between(before, after).others == 1);
  after.own_ns = 9'000'000'000;
  BOOST_TEST(rates_between(before, after).others == 0);
  after.view.programs.clear();
  after.own_ns = 0;
  BOOST_TEST(rates_between(before, after).others == 0);
}

// A number of a process may be given again, and a program is seen without its segment when it leaves.
BOOST_AUTO_TEST_CASE(a_program_that_is_not_the_same_has_no_rates) {
  Look before = look_at(0ms), after = look_at(1000ms);
  before.view.programs = {program(5), program(6), program(7)};
  after.view.programs = {program(5), program(6), program(7), program(8)};
  after.view.programs[0].counted.job = 8;
  after.view.programs[1].counted.segment = 1;
  after.view.programs[2].seen.joined = false;
  for (auto& each : after.view.programs) each.counted.bytes_out = 1000;
  for (const auto& each : rates_between(before, after).programs) BOOST_TEST(each.out.bytes == 0);
}

BOOST_AUTO_TEST_CASE(the_kernel_has_rates_of_its_counters_while_it_is_the_same) {
  Look before = look_at(0ms), after = look_at(100ms);
  before.view.kernel.values[static_cast<std::size_t>(Counter::Turns)] = 1000;
  after.view.kernel.values[static_cast<std::size_t>(Counter::Turns)] = 1500;
  after.view.kernel.values[static_cast<std::size_t>(Counter::PoolBytes)] = 0;
  before.view.kernel.values[static_cast<std::size_t>(Counter::PoolBytes)] = 10;
  before.threads[1] = {.ran_ns = 0, .delayed_ns = 0, .runs = 0};
  after.threads[1] = {.ran_ns = 25'000'000, .delayed_ns = 0, .runs = 0};
  Rates rates = rates_between(before, after);
  BOOST_TEST(rates.counters[static_cast<std::size_t>(Counter::Turns)] == 5000,
             boost::test_tools::tolerance(1e-9));
  BOOST_TEST(rates.counters[static_cast<std::size_t>(Counter::PoolBytes)] == 0);
  BOOST_TEST(rates.thread.core == 0.25, boost::test_tools::tolerance(1e-9));
  BOOST_TEST(rates.thread.delay_us == 0);
  after.view.kernel.identity = 43;
  rates = rates_between(before, after);
  BOOST_TEST(rates.counters[static_cast<std::size_t>(Counter::Turns)] == 0);
  BOOST_TEST(rates.thread.core == 0);
}

BOOST_AUTO_TEST_CASE(no_time_is_no_rate) {
  Look before = look_at(0ms), after = look_at(0ms);
  after.view.kernel.values[0] = 1000;
  BOOST_TEST(rates_between(before, after).counters[0] == 0);
}

BOOST_AUTO_TEST_SUITE_END()

} // namespace parc::tools
