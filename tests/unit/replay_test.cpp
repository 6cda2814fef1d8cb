// SPDX-License-Identifier: BSD-3-Clause
// Runs that are small enough to be counted by hand, played again.
#include "model/gain.hpp"
#include "model/replay.hpp"

#include <boost/test/unit_test.hpp>
#include <cmath>

namespace parc::model {
namespace {

using Kind = Action::Kind;

const auto to_a_millionth = boost::test_tools::tolerance(1e-6);

Action calculate(double seconds) {
  return {.kind = Kind::calculate, .seconds = seconds};
}
Action begin(std::vector<std::uint32_t> transfers) {
  return {.kind = Kind::begin, .transfers = std::move(transfers)};
}
Action wait(std::vector<std::uint32_t> transfers, std::uint32_t place = 0, double cost = 0) {
  return {.kind = Kind::wait, .seconds = cost, .place = place, .transfers = std::move(transfers)};
}
Action touch(std::uint32_t transfer, double part) {
  return {.kind = Kind::touch, .part = part, .transfers = {transfer}};
}
Action mark() {
  return {.kind = Kind::mark};
}

Run on_hosts(std::vector<std::vector<Action>> ranks, std::vector<Transfer> transfers) {
  Run run{.ranks = std::move(ranks), .host_of = {}, .transfers = std::move(transfers), .hosts = 0};
  for (std::uint32_t rank = 0; rank < run.ranks.size(); ++rank) run.host_of.push_back(rank);
  run.hosts = run.ranks.size();
  return run;
}
Wires all(std::size_t hosts, Wire wire) {
  Wires wires(hosts);
  for (std::size_t from = 0; from < hosts; ++from)
    for (std::size_t to = 0; to < hosts; ++to) wires.between(from, to) = wire;
  return wires;
}

// Both calculate, send, and wait: `steps` times. Each first touches a part of what came behind `untouched` of
// its calculation.
Run exchange(int steps, double calculation, double bytes, double untouched, double other_calculation) {
  std::vector<std::vector<Action>> ranks(2);
  std::vector<Transfer> transfers;
  for (int step = 0; step < steps; ++step) {
    const auto number = static_cast<std::uint32_t>(transfers.size());
    transfers.push_back({0, 1, bytes});
    transfers.push_back({1, 0, bytes});
    for (std::uint32_t rank = 0; rank < 2; ++rank) {
      auto& actions = ranks[rank];
      const double all_of_it = rank == 0 ? calculation : other_calculation;
      if (rank == 0) actions.push_back(mark());
      actions.push_back(calculate(untouched * all_of_it));
      if (step > 0) actions.push_back(touch(number - 2 + (1 - rank), 1));
      actions.push_back(calculate((1 - untouched) * all_of_it));
      actions.push_back(begin({number + rank}));
      actions.push_back(wait({number + 1 - rank}));
    }
  }
  return on_hosts(std::move(ranks), std::move(transfers));
}

double step_of(const Replayed& replayed) {
  const auto& marks = replayed.marks;
  return (marks.back() - marks[1]) / static_cast<double>(marks.size() - 2);
}

} // namespace

BOOST_AUTO_TEST_SUITE(replayed_runs)

BOOST_AUTO_TEST_CASE(a_message_takes_latency_and_bytes) {
  const Run run =
      on_hosts({{calculate(1), begin({0}), wait({0}), mark()}, {wait({0}, 0, 0.5), mark()}}, {{0, 1, 100}});
  const Replayed replayed = replay(run, all(2, {0.25, 50}), {});
  BOOST_REQUIRE(replayed.marks.size() == 2U);
  BOOST_TEST(replayed.marks[0] == 1 + 2 + 0.5, to_a_millionth); // who sends hears of it a way back later
  BOOST_TEST(replayed.marks[1] == 1 + 0.25 + 2 + 0.5, to_a_millionth); // and its wait's own cost
}

BOOST_AUTO_TEST_CASE(bytes_may_cost_nothing) {
  const Run run = on_hosts({{begin({0, 1})}, {wait({0, 1}), mark()}}, {{0, 1, 1e9}, {0, 1, 0}});
  const double any = std::numeric_limits<double>::infinity();
  BOOST_TEST(replay(run, all(2, {0.25, any}), {}).marks.at(0) == 0.25);
}

BOOST_AUTO_TEST_CASE(one_goes_behind_the_other) {
  const Run run = on_hosts({{begin({0}), calculate(1), begin({1})}, {wait({0}), mark(), wait({1}), mark()}},
                           {{0, 1, 200}, {0, 1, 50}});
  const Replayed replayed = replay(run, all(2, {0, 50}), {});
  BOOST_TEST(replayed.marks.at(0) == 4.0, to_a_millionth);
  BOOST_TEST(replayed.marks.at(1) == 5.0, to_a_millionth);
}

BOOST_AUTO_TEST_CASE(neighbours_have_wires_of_their_own) {
  Run run = on_hosts({{begin({0})}, {begin({1})}, {wait({0, 1}), mark()}}, {{0, 2, 100}, {1, 2, 100}});
  BOOST_TEST(replay(run, all(3, {0, 100}), {}).marks.at(0) == 1.0, to_a_millionth);
  run.host_of = {0, 0, 1}; // through one
  BOOST_TEST(replay(run, all(3, {0, 100}), {}).marks.at(0) == 2.0, to_a_millionth);
  run.host_of = {0, 0, 0};
  BOOST_TEST(replay(run, all(3, {0, 100}), {}).marks.at(0) == 1.0, to_a_millionth);
}

BOOST_AUTO_TEST_CASE(a_get_is_asked_for) {
  Run run = on_hosts({{begin({0}), wait({0}), mark()}, {}}, {{1, 0, 100}});
  run.ranks[0][0].asks = true;
  BOOST_TEST(replay(run, all(2, {0.25, 100}), {}).marks.at(0) == 0.25 + 1 + 0.25, to_a_millionth);
}

BOOST_AUTO_TEST_CASE(parts_are_there_before_the_whole) {
  const Run run = on_hosts(
      {{begin({0})},
       {wait({0}), touch(0, 0.25), mark(), calculate(0.5), touch(0, 0.5), mark(), touch(0, 1), mark()}},
      {{0, 1, 100}});
  const Wires wires = all(2, {0.5, 100});
  const auto there = replay(run, wires, {});
  BOOST_TEST(there.marks.at(0) == 1.5, to_a_millionth);
  BOOST_TEST(there.marks.at(2) == 2.0, to_a_millionth);
  const auto touches = replay(run, wires, {.where = Waits::Where::first_touch});
  BOOST_TEST(touches.marks.at(0) == 1.5, to_a_millionth); // all of it
  const auto released = replay(run, wires, {.where = Waits::Where::released, .release = 0.01, .wake = 0.001});
  BOOST_TEST(released.marks.at(0) == 0.751, to_a_millionth);
  BOOST_TEST(released.marks.at(1) == 1.251, to_a_millionth); // no wake
  BOOST_TEST(released.marks.at(2) == 1.502 - 0.001, to_a_millionth);
  BOOST_TEST(replay(run, wires, {.where = Waits::Where::first_touch, .place = 1}).marks.at(0) == 1.5,
             to_a_millionth);
}

BOOST_AUTO_TEST_CASE(what_nobody_touches_is_waited_for) {
  const Run run = on_hosts({{begin({0})}, {wait({0}), mark()}}, {{0, 1, 100}});
  BOOST_TEST(replay(run, all(2, {0, 100}), {.where = Waits::Where::first_touch}).marks.at(0) == 1.0,
             to_a_millionth);
}

// MPI's waits are released when their message has begun.
BOOST_AUTO_TEST_CASE(waits_for_beginnings) {
  const Run run =
      on_hosts({{calculate(2), begin({0})}, {wait({0}), mark(), touch(0, 1), mark()}}, {{0, 1, 100}});
  const auto begun = replay(run, all(2, {0.5, 100}), {.where = Waits::Where::begun, .release = 0.01});
  BOOST_TEST(begun.marks.at(0) == 2.51, to_a_millionth);
  BOOST_TEST(begun.marks.at(1) == 3.5, to_a_millionth);
}

// What is sent behind a released wait says that what it waited for has begun.
BOOST_AUTO_TEST_CASE(sends_stay_behind_released_waits) {
  const Run run = on_hosts(
      {{calculate(2), begin({0})}, {wait({0}), begin({1}), mark(), touch(0, 1), mark()}, {wait({1}), mark()}},
      {{0, 1, 100}, {1, 2, 0}});
  const auto released = replay(run, all(3, {0.5, 100}), {.where = Waits::Where::released});
  BOOST_TEST(released.marks.at(0) == 0.0, to_a_millionth);
  BOOST_TEST(released.marks.at(1) == 2.5 + 0.5, to_a_millionth); // rank 2: begun at 2.5
  BOOST_TEST(released.marks.at(2) == 3.5, to_a_millionth);
  const auto touches = replay(run, all(3, {0.5, 100}), {.where = Waits::Where::first_touch});
  BOOST_TEST(touches.marks.at(1) == 0.5, to_a_millionth);
}

// Two whose sends stand behind each other's released messages: each behind the one before it only.
BOOST_AUTO_TEST_CASE(released_exchanges_go_on) {
  const Run run = exchange(5, 1, 100, 0.9, 1);
  const auto released = replay(run, all(2, {0.5, 100}), {.where = Waits::Where::released});
  BOOST_TEST(released.marks.size() == 5U);
}

// (A.1) and (A.2) of the report of 1994.
BOOST_AUTO_TEST_CASE(steps_are_as_the_gain_model_has_them) {
  const Wires wires = all(2, {0.1, 100});
  for (const double calculation : {0.3, 1.0, 2.0}) {
    const double bytes = 90, t_com = 0.1 + bytes / 100;
    const Run run = exchange(40, calculation, bytes, 1, calculation);
    const double blocking = step_of(replay(run, wires, {}));
    BOOST_TEST(blocking == calculation + t_com, boost::test_tools::tolerance(1e-3));
    const double hidden = step_of(replay(run, wires, {.where = Waits::Where::first_touch}));
    BOOST_TEST(hidden == std::max(calculation, t_com), boost::test_tools::tolerance(0.02));
    BOOST_TEST(blocking / hidden == gain_of_times(calculation, t_com), boost::test_tools::tolerance(0.02));
  }
}

BOOST_AUTO_TEST_CASE(only_messages_are_left) {
  const Run run = only_messages(exchange(10, 5, 90, 0.5, 3));
  BOOST_TEST(step_of(replay(run, all(2, {0.1, 100}), {})) == 1.0, to_a_millionth);
}

BOOST_AUTO_TEST_CASE(who_waits_for_what_never_begins_stays) {
  const Run run = on_hosts({{calculate(1), mark()}, {wait({0}), mark()}}, {{0, 1, 100}});
  const Replayed replayed = replay(run, all(2, {0, 100}), {});
  BOOST_TEST(replayed.marks.size() == 1U);
}

BOOST_AUTO_TEST_SUITE_END()

} // namespace parc::model
