// SPDX-License-Identifier: BSD-3-Clause
// What runs are made of, from the records of ranks that did what is written here.
#include "tools/parc/advice/period.hpp"
#include "tools/parc/advice/predictions.hpp"
#include "tools/parc/advice/wires.hpp"

#include <boost/test/unit_test.hpp>
#include <cmath>
#include <cstring>

namespace parc::tools {
namespace {

using trace::Kind;
using trace::Record;

const auto to_a_hundredth = boost::test_tools::tolerance(0.01);
constexpr std::uint64_t us = 1000; // in the records' ns

// One thread of a rank, whose time goes on with what it does.
struct Told {
  RankTrace trace;
  std::uint64_t now, id = 0;

  Told(const std::string& host, std::uint64_t to_real) : now(6'000'000'000 - to_real) {
    trace.host = host;
    Record opened = record(Kind::opened);
    opened.end = to_real;
    trace.records.push_back(opened);
  }
  [[nodiscard]] Record record(Kind kind) const {
    Record made{};
    made.kind = kind;
    made.thread = 7;
    made.begin = now;
    return made;
  }
  void calculate(std::uint64_t time) { now += time * us; }
  void call(trace::Call call, std::uint64_t waited_for, std::uint64_t end, std::uint64_t site = 0x100) {
    Record made = record(Kind::call);
    made.call = call;
    made.id = waited_for;
    made.end = end;
    made.site = site;
    trace.records.push_back(made);
    now = end;
  }
  std::uint64_t message(bool writes, std::int32_t peer, std::uint64_t bytes, std::uint64_t first,
                        std::uint64_t end) {
    Record made = record(Kind::message);
    made.flags = writes ? trace::flag_write : 0;
    made.peer = peer;
    made.bytes = bytes;
    made.id = ++id;
    made.first = first;
    made.end = end;
    made.site = writes ? 0x200 : 0x300;
    trace.records.push_back(made);
    return id;
  }
  void touch(std::uint64_t read, std::uint64_t offset, std::uint64_t pages) {
    Record made = record(Kind::touches);
    made.id = read;
    made.bytes = offset;
    made.first = offset + (pages - 1) * 4096;
    made.context = static_cast<std::uint32_t>(pages);
    made.end = now;
    made.site = 0x400;
    trace.records.push_back(made);
  }
};

// Two hosts whose clocks differ by a second. Each rank calculates, writes, and waits for the other's message,
// which takes 1 ms and 4 ms for its 400,000 bytes; of what has come it touches everything at a time.
std::map<std::uint64_t, RankTrace> exchange(int steps, std::uint64_t calculation,
                                            std::uint64_t until_touched) {
  constexpr std::uint64_t bytes = 400'000, latency = 1000 * us, length = 4000 * us;
  std::vector<Told> ranks{{"a", 5'000'000'000}, {"b", 4'000'000'000}};
  for (int step = 0; step < steps; ++step)
    for (int number = 0; number < 2; ++number) {
      Told& rank = ranks[static_cast<std::size_t>(number)];
      if (step != 0) {
        rank.calculate(until_touched);
        rank.touch(rank.id - 1, 0, 97);
      }
      rank.calculate(calculation - (step != 0 ? until_touched : 0));
      const std::uint64_t first = rank.now + latency, end = first + length;
      const std::uint64_t read = rank.message(false, 1 - number, bytes, first, end);
      rank.now += us; // it was posted before the other's write was begun
      rank.message(true, 1 - number, bytes, 0, end + latency);
      rank.call(trace::Call::wait, read, end + us);
    }
  return {{0, ranks[0].trace}, {1, ranks[1].trace}};
}

std::vector<int> repeated(std::vector<int> before, const std::vector<int>& step, int times,
                          const std::vector<int>& after = {}) {
  for (int i = 0; i < times; ++i) before.insert(before.end(), step.begin(), step.end());
  before.insert(before.end(), after.begin(), after.end());
  return before;
}

} // namespace

BOOST_AUTO_TEST_SUITE(traced_run)

BOOST_AUTO_TEST_CASE(periods) {
  const auto found = find_period(repeated({9, 8}, {1, 2, 1, 3}, 5, {7}));
  BOOST_TEST(found.length == 4U);
  BOOST_TEST(found.begin == 2U);
  BOOST_TEST(found.end == 22U);
  BOOST_TEST(find_period(repeated({}, {5}, 6)).length == 1U);
  BOOST_TEST(find_period(std::vector<int>{}).length == 0U);
  BOOST_TEST(find_period(std::vector<int>{1, 2, 3, 4, 5, 6, 7}).length == 0U);
  BOOST_TEST(find_period(repeated({}, {1, 2}, 2)).length == 0U); // twice is not often
  BOOST_TEST(find_period(repeated({9, 8, 7, 6, 5, 4, 3, 9, 8, 7, 6}, {1, 2}, 3)).length ==
             0U); // not most of it
  // An iteration within a step is none.
  BOOST_TEST(find_period(repeated({}, {1, 1, 1, 1, 2}, 4)).length == 5U);
}

BOOST_AUTO_TEST_CASE(wires_by_their_messages) {
  std::vector<MatchedMessage> messages;
  for (int i = 0; i < 20; ++i) { // the other host's clock is 3 s ahead
    const double at = i * 0.1;
    messages.push_back({0, 1, 1'000'000, at + 2.9, at, at + 3.010, at + 3.110});
    messages.push_back({1, 0, 8, at - 0.1, at + 3, at + 0.010, at + 0.010});
  }
  messages.push_back({0, 1, 8, 3.5, 0.1, 3.5, 3.5}); // was there before its read
  const auto wires = measure_wires(messages, 2);
  BOOST_TEST(wires.between(0, 1).latency == 0.010, to_a_hundredth);
  BOOST_TEST(wires.between(1, 0).latency == 0.010, to_a_hundredth);
  BOOST_TEST(wires.between(0, 1).bandwidth == 1e7, to_a_hundredth);
  BOOST_TEST(std::isinf(wires.between(1, 0).bandwidth)); // nothing long went there
}

BOOST_AUTO_TEST_CASE(a_run_is_replayed_as_it_was) {
  const TracedRun traced = make_run(exchange(20, 6000, 0));
  BOOST_TEST(traced.hosts.size() == 2U);
  BOOST_TEST(traced.messages == 40U);
  BOOST_TEST(traced.unmatched == 0U);
  BOOST_TEST(traced.steps == 19U);
  BOOST_TEST(traced.messages_a_step == 1U); // that it sends
  BOOST_TEST(traced.step == 0.011, to_a_hundredth);
  BOOST_TEST(traced.wires.between(0, 1).latency == 0.001, to_a_hundredth);
  BOOST_TEST(traced.wires.between(1, 0).bandwidth == 1e8, to_a_hundredth);
  const Predictions predictions = predict(traced, {}, ReleaseAt::once);
  BOOST_TEST(predictions.replayed == 0.011, to_a_hundredth);
  BOOST_TEST(predictions.calculation == 0.006, to_a_hundredth);
  BOOST_TEST(predictions.messages == 0.005, to_a_hundredth);
}

BOOST_AUTO_TEST_CASE(what_is_touched_late_can_be_hidden) {
  const auto links = std::vector<NamedLink>{{"slow", {0.002, 5e7 / 0.955}}};
  const Predictions late = predict(make_run(exchange(20, 6000, 5900)), links, ReleaseAt::once);
  BOOST_TEST(late.hidden == 0.006, boost::test_tools::tolerance(0.02));
  BOOST_TEST(late.released == 0.006, boost::test_tools::tolerance(0.02));
  BOOST_REQUIRE(late.lines.size() == 1U);
  BOOST_TEST(late.lines[0].step == 0.006, boost::test_tools::tolerance(0.02));
  BOOST_TEST(late.others.at(0).step == 0.006 + 0.002 + 0.008, to_a_hundredth);
  BOOST_TEST(late.others.at(1).step == 0.010, boost::test_tools::tolerance(0.02));
  const Predictions early = predict(make_run(exchange(20, 6000, 0)), {}, ReleaseAt::once);
  BOOST_TEST(early.hidden > 0.95 * 0.011);
  BOOST_TEST(early.best == 0.006, to_a_hundredth);
  BOOST_TEST((early.limit == Limit::bandwidth));
}

BOOST_AUTO_TEST_CASE(places_know_where_they_are_touched) {
  const TracedRun traced = make_run(exchange(20, 6000, 3000));
  BOOST_REQUIRE(traced.places.size() == 1U);
  BOOST_TEST(traced.places[0].at.site == 0x100U);
  BOOST_TEST(traced.places[0].touched_at.site == 0x400U);
  BOOST_TEST(traced.places[0].waits == 40U);
  BOOST_TEST(traced.places[0].waited == 40 * 0.005, to_a_hundredth);
  BOOST_TEST(traced.touched == 38U); // the last ones are not
}

// MPI looks again and again, and does other things between; that is no calculation.
BOOST_AUTO_TEST_CASE(looks_in_vain_are_one_wait) {
  auto ranks = exchange(20, 6000, 0);
  for (auto& [number, rank] : ranks) {
    rank.peers[-1] = number; // of MPI's
    std::vector<Record> records;
    for (const Record& record : rank.records) {
      if (record.kind != Kind::call) {
        records.push_back(record);
        continue;
      }
      for (std::uint64_t at = record.begin; at < record.end; at += 1000 * us) {
        Record look = record;
        look.id = 0;
        look.begin = at;
        look.end = std::min(at + 950 * us, record.end);
        records.push_back(look);
      }
      records.back().end = record.end;
    }
    rank.records = records;
  }
  const Predictions predictions = predict(make_run(ranks), {}, ReleaseAt::beginning);
  BOOST_TEST(predictions.replayed == 0.011, to_a_hundredth);
  BOOST_TEST(predictions.calculation == 0.006, to_a_hundredth);
}

// Threads that only calculate, as OpenMP's, touch what another has read.
BOOST_AUTO_TEST_CASE(others_may_touch) {
  auto ranks = exchange(20, 6000, 3000);
  for (auto& [number, rank] : ranks)
    for (Record& each : rank.records)
      if (each.kind == Kind::touches) each.thread = 99;
  const TracedRun traced = make_run(ranks);
  BOOST_TEST(traced.run.ranks.size() == 2U);
  BOOST_REQUIRE(traced.places.size() == 1U);
  BOOST_TEST(traced.places[0].touched_at.site == 0x400U);
  BOOST_TEST(!traced.places[0].untouched);
  BOOST_TEST(predict(traced, {}, ReleaseAt::once).hidden < 0.009);
}

// Known to be needed by nobody, until its buffer is used again.
BOOST_AUTO_TEST_CASE(nobody_may_touch) {
  auto ranks = exchange(20, 6000, 3000);
  for (auto& [number, rank] : ranks)
    for (Record& each : rank.records) {
      if (each.kind == Kind::touches) each.context = 0;
      if (each.kind == Kind::message)
        each.address = each.id % 4 * 4096 + 4096; // two buffers for reads, in turn
    }
  const TracedRun traced = make_run(ranks);
  BOOST_REQUIRE(traced.places.size() == 1U);
  BOOST_TEST(traced.places[0].untouched);
  BOOST_TEST(predict(traced, {}, ReleaseAt::once).hidden == 0.006, boost::test_tools::tolerance(0.02));
}

// A wait that names no operation has not waited for those that others name.
BOOST_AUTO_TEST_CASE(named_operations_are_not_taken) {
  auto ranks = exchange(20, 6000, 3000);
  for (auto& [number, rank] : ranks) {
    std::vector<Record> records;
    for (const Record& record : rank.records) {
      if (record.kind == Kind::call) {
        Record all = record;
        all.call = trace::Call::waitall;
        all.id = 0;
        all.site = 0x500;
        all.begin = record.end - 2;
        all.end = record.end - 1; // the read had ended by then
        Record named = record;
        named.begin = record.end - 1;
        records.push_back(all);
        records.push_back(named);
        continue;
      }
      records.push_back(record);
    }
    rank.records = records;
  }
  const TracedRun traced = make_run(ranks);
  for (const WaitPlace& place : traced.places) BOOST_TEST((place.waits == 0 || place.at.site == 0x100));
}

// What a program does not know of may be in a trace: reads of nobody's writes, ranks without any record.
BOOST_AUTO_TEST_CASE(traces_that_make_little_sense) {
  BOOST_TEST(make_run({}).messages == 0U);
  BOOST_TEST(make_run({{0, {}}, {3, {}}}).messages == 0U);
  auto ranks = exchange(8, 6000, 0);
  std::erase_if(ranks.at(1).records, [](const Record& each) { return each.kind == Kind::message; });
  for (Record& each : ranks.at(0).records)
    if (each.kind == Kind::touches) each.context = 4'000'000'000;
  const TracedRun traced = make_run(ranks);
  BOOST_TEST(traced.messages == 0U);
  BOOST_TEST(traced.unmatched == 16U);
  ranks = exchange(8, 6000, 0);
  std::uint64_t seed = 1;
  for (int round = 0; round < 200; ++round) { // anything in any place
    auto torn = ranks;
    for (auto& [number, rank] : torn)
      for (Record& each : rank.records) {
        seed = seed * 6364136223846793005U + 1442695040888963407U;
        if (seed >> 60 != 0) continue;
        auto* const bytes = reinterpret_cast<unsigned char*>(&each);
        bytes[8 + (seed >> 32) % (sizeof each - 8)] = static_cast<unsigned char>(seed >> 24);
        if (each.begin > each.end && each.kind != Kind::message && each.kind != Kind::opened)
          each.end = each.begin;
      }
    const TracedRun made = make_run(torn);
    if (made.messages != 0) (void)predict(made, {}, ReleaseAt::once);
  }
}

BOOST_AUTO_TEST_SUITE_END()

} // namespace parc::tools
