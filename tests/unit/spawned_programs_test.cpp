// SPDX-License-Identifier: BSD-3-Clause
#include "daemon/program/spawned_programs.hpp"

#include "shm/segment.hpp"
#include "tests/unit/program_test.hpp"

#include <csignal>

namespace parc::daemon {

BOOST_AUTO_TEST_SUITE(spawned_programs)

namespace {

// A program whose kernel hears what it wants spawned, and sends no signals but to job 5 and its children.
struct SpawningProgram : test::ProgramHost {
  static constexpr std::uint64_t address_there = 1 << 20, bytes = 4096;
  struct Spawn {
    Sessions::Member by;
    pid_t process;
    SpawnRequest wish;
    SpawnListener listener;
  };
  struct Signal {
    std::uint64_t job;
    std::uint32_t rank;
    int number;
    bool operator==(const Signal&) const = default;
  };

  SpawningProgram() {
    auto made = shm::Segment::create(bytes);
    BOOST_REQUIRE(made.has_value());
    segment = std::move(made).value();
    BOOST_REQUIRE(memory.map(address_there, bytes, segment.id()).has_value());
    events.spawn = [this](const Sessions::Member& by, pid_t process, const SpawnRequest& wish,
                          SpawnListener listener) {
      spawns.push_back({by, process, wish, std::move(listener)});
    };
    events.signal = [this](std::uint64_t job, std::uint32_t rank, int number) {
      signals.push_back({job, rank, number});
      return job == member.job || job == child_job;
    };
    spawned.emplace(SpawnedPrograms::Needs{.loop = loop,
                                           .engine = engine,
                                           .peers = peers,
                                           .memory = memory,
                                           .events = events,
                                           .member = member,
                                           .has_table = [this] { return has_table; }},
                    SpawnedPrograms::Events{
                        .ended = [this](std::uint64_t id, const Completion& how) { over[id] = how; }});
  }

  [[nodiscard]] std::optional<Completion> spawn(std::uint64_t operation, std::string texts,
                                                std::uint64_t count) {
    shm::Request request{};
    request.id = operation;
    request.spawned = {texts.size(), count};
    request.address = address_there;
    request.length = bytes;
    texts.resize(std::max<std::size_t>(texts.size(), bytes));
    return spawned->spawn(request, test::pieces(texts), 1234);
  }
  // One call, as far as its kernel has heard of it.
  SpawnListener& call(std::uint64_t operation, std::uint64_t count) {
    BOOST_REQUIRE(!spawn(operation, std::string("\0./child\0", 9), count).has_value());
    loop.end_step();
    BOOST_REQUIRE(!spawns.empty());
    return spawns.back().listener;
  }
  // That kernel has made `ranks`; how they are to start.
  std::optional<Result<void>> prepare(const SpawnListener& listener, std::vector<EndpointAddress> ranks) {
    std::optional<Result<void>> ready;
    listener.prepared(child_job, std::move(ranks), [&ready](Result<void> how) { ready = std::move(how); });
    loop.end_step();
    return ready;
  }
  [[nodiscard]] EndpointAddress child() { return peers.describe({protocol::here, add_program(9)}); }
  // A child that runs: its row.
  std::int32_t start_child(SpawnListener& listener) {
    BOOST_REQUIRE(prepare(listener, {child()}).value().has_value());
    listener.started(success());
    return over.rbegin()->second.outcome.source;
  }
  [[nodiscard]] std::int32_t row_said(std::size_t which) const {
    std::int32_t row;
    std::memcpy(&row, segment.data() + which * sizeof row, sizeof row);
    return row;
  }

  static constexpr std::uint64_t child_job = 6;
  shm::Segment segment;
  Extents memory;
  Sessions::Events events;
  std::vector<Spawn> spawns;
  std::vector<Signal> signals;
  std::optional<SpawnedPrograms> spawned;
};

} // namespace

BOOST_AUTO_TEST_CASE(children_are_rows_before_they_start) {
  SpawningProgram program;
  SpawnListener& listener = program.call(3, 2);
  const SpawningProgram::Spawn& spawn = program.spawns.back();
  BOOST_TEST((spawn.by.endpoint == 1u && spawn.process == 1234));
  BOOST_TEST(spawn.wish.ranks() == 2u);
  BOOST_TEST(spawn.wish.apps[0].arguments == std::vector<std::string>{"./child"});
  BOOST_TEST(spawn.wish.parent == program.address(1));

  const std::vector<EndpointAddress> ranks{program.child(), program.child()};
  BOOST_TEST(program.prepare(listener, ranks).value().has_value());
  for (const std::int32_t row : {0, 1})
    BOOST_TEST(program.engine.address(1, row).value().number == ranks[static_cast<std::size_t>(row)].number);
  BOOST_TEST(program.over.empty());
  listener.started(success());
  BOOST_TEST(program.error_of(3) == PARC_OK);
  BOOST_TEST(program.over.at(3).outcome.source == 1); // the last row
  BOOST_TEST(program.over.at(3).outcome.total == 2 * sizeof(std::int32_t));
  BOOST_TEST((program.row_said(0) == 0 && program.row_said(1) == 1));
}

BOOST_AUTO_TEST_CASE(requests_that_make_no_sense) {
  SpawningProgram program;
  const std::string texts("\0./child\0", 9);
  for (const auto& how : {program.spawn(3, texts, 0), program.spawn(3, "no end", 1),
                          program.spawn(3, texts, SpawningProgram::bytes / sizeof(std::int32_t) + 1)})
    BOOST_TEST(how.value().error == PARC_EINVAL);
  program.loop.end_step();
  BOOST_TEST(program.spawns.empty());
}

BOOST_AUTO_TEST_CASE(sixteen_calls_at_once) {
  SpawningProgram program;
  for (std::uint64_t operation = 0; operation < 16; ++operation) program.call(operation, 1);
  const std::string texts("\0./child\0", 9);
  BOOST_TEST(program.spawn(16, texts, 1).value().error == PARC_EAGAIN);
  program.spawns[0].listener.started(error(ENOENT, "cannot start ./child: no such file"));
  BOOST_TEST(!program.spawn(16, texts, 1).has_value());
}

BOOST_AUTO_TEST_CASE(why_none_was_spawned_is_a_sentence_for_the_program) {
  SpawningProgram program;
  const SpawnListener& listener = program.call(3, 1);
  const auto ready = program.prepare(listener, {program.elsewhere()}).value();
  BOOST_REQUIRE(!ready.has_value());
  BOOST_TEST((ready.error().text.find("cannot reach") != std::string::npos), ready.error().text);
  listener.started(ready);
  BOOST_TEST(program.error_of(3) == PARC_OK);
  BOOST_TEST(program.over.at(3).outcome.source == -1);
  const std::string said(reinterpret_cast<const char*>(program.segment.data()),
                         program.over.at(3).outcome.total);
  BOOST_TEST(said == ready.error().text);
}

BOOST_AUTO_TEST_CASE(a_child_that_is_gone_before_it_has_a_row) {
  SpawningProgram program;
  const SpawnListener& listener = program.call(3, 1);
  const auto ready = program.prepare(listener, {program.peers.describe({protocol::here, 77})}).value();
  BOOST_TEST(ready.error().text == "the job of what it spawns has ended");
}

BOOST_AUTO_TEST_CASE(memory_taken_away_meanwhile) {
  SpawningProgram program;
  const SpawnListener& listener = program.call(3, 1);
  BOOST_TEST(program.memory.unmap(SpawningProgram::address_there));
  listener.started(error(ENOENT, "cannot start ./child: no such file"));
  BOOST_TEST(program.error_of(3) == PARC_EINVAL);
}

// Before its kernel has made them, while others are reached, and before they have started.
BOOST_AUTO_TEST_CASE(a_program_that_leaves_meanwhile) {
  SpawningProgram program;
  const SpawnListener first = program.call(3, 1), second = program.call(4, 1), third = program.call(5, 1);
  std::optional<Result<void>> reached;
  second.prepared(6, {program.child()}, [&reached](Result<void> how) { reached = std::move(how); });
  program.has_table = false;
  const auto made = program.prepare(first, {program.child()}).value();
  BOOST_TEST(made.error().text == "the program that spawns it has gone");
  BOOST_TEST(reached.value().error().text == "the program that spawns it has gone");
  BOOST_TEST(!program.engine.has_given(1, 0));
  third.started(success());
  BOOST_TEST(program.error_of(5) == PARC_ECANCELED);

  program.spawned.reset();
  BOOST_TEST(!program.prepare(first, {program.child()}).value().has_value());
  first.started(success());
  first.exited(0, 0);
  BOOST_TEST(!program.over.contains(3));
}

BOOST_AUTO_TEST_CASE(exits_are_told_before_and_after) {
  SpawningProgram program;
  SpawnListener& listener = program.call(3, 1);
  const std::int32_t row = program.start_child(listener);
  BOOST_TEST(program.spawned->await_exit(10, row + 1).value().error == PARC_EINVAL);
  for (std::uint64_t operation = 10; operation < 74; ++operation)
    BOOST_TEST(!program.spawned->await_exit(operation, row).has_value());
  BOOST_TEST(program.spawned->await_exit(74, row).value().error == PARC_EAGAIN);
  BOOST_TEST(program.spawned->cancel(11));
  BOOST_TEST(program.error_of(11) == PARC_ECANCELED);
  BOOST_TEST(!program.spawned->cancel(11));
  BOOST_TEST(!program.over.contains(10));

  listener.exited(1, 0); // no rank of it
  BOOST_TEST(!program.over.contains(10));
  listener.exited(0, 139);
  const auto after = program.spawned->await_exit(74, row);
  for (const Completion& how : {program.over.at(10), program.over.at(73), after.value()}) {
    BOOST_TEST(how.error == PARC_OK);
    BOOST_TEST((how.outcome.source == row && how.outcome.data == 139u &&
                has(how.outcome.flags, protocol::MessageFlags::with_data)));
  }
  BOOST_TEST(program.error_of(11) == PARC_ECANCELED);
}

BOOST_AUTO_TEST_CASE(all_that_wait_for_exits_are_canceled_at_its_end) {
  SpawningProgram program;
  const std::int32_t row = program.start_child(program.call(3, 1));
  for (const std::uint64_t operation : {10, 11})
    BOOST_TEST(!program.spawned->await_exit(operation, row).has_value());
  program.spawned->cancel_all();
  BOOST_TEST((program.error_of(10) == PARC_ECANCELED && program.error_of(11) == PARC_ECANCELED));
}

BOOST_AUTO_TEST_CASE(signals_go_to_children_and_ranks_of_its_job) {
  SpawningProgram program;
  program.engine.add_row(1, {protocol::here, 1}); // both ranks of its job
  program.engine.add_row(1, {protocol::here, program.add_program(2)});
  SpawnListener& listener = program.call(3, 1);
  const std::int32_t row = program.start_child(listener);
  BOOST_TEST(row == 2);
  BOOST_TEST(program.spawned->signal(row, SIGTERM).error == PARC_OK);
  BOOST_TEST(program.spawned->signal(1, 0).error == PARC_OK);
  const std::vector<SpawningProgram::Signal> sent{{SpawningProgram::child_job, 0, SIGTERM},
                                                  {program.member.job, 1, 0}};
  BOOST_TEST((program.signals == sent));
  BOOST_TEST(program.spawned->signal(row, NSIG).error == PARC_EINVAL);
  for (const std::int32_t nobody : {-1, row + 1})
    BOOST_TEST(program.spawned->signal(nobody, SIGTERM).error == PARC_EINVAL);
  listener.exited(0, 0);
  BOOST_TEST(program.spawned->signal(row, SIGTERM).error == PARC_EPEER);
  BOOST_TEST((program.signals == sent));
  program.member.job = 8; // one that nobody here knows
  program.events.signal = [](std::uint64_t, std::uint32_t, int) { return false; };
  BOOST_TEST(program.spawned->signal(1, SIGTERM).error == PARC_EINVAL);
}

BOOST_AUTO_TEST_SUITE_END()

} // namespace parc::daemon
