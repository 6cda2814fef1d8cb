// SPDX-License-Identifier: BSD-3-Clause
#include "control/rank_state.hpp"
#include "system/observe/unfinished.hpp"

#include "shm/onlooker.hpp"
#include "system/coarse_clock.hpp"

#include <boost/test/unit_test.hpp>
#include <memory>
#include <nlohmann/json.hpp>

namespace parc {

BOOST_AUTO_TEST_SUITE(unfinished)

namespace {

using Ranks = std::vector<std::uint64_t>;

Unfinished read_of(std::int32_t peer, std::int32_t tag = 1) {
  return {.peer = peer, .tag = tag, .bytes = 8};
}
Unfinished write_to(std::int32_t peer, std::int32_t tag = 1) {
  return {.peer = peer, .tag = tag, .bytes = 8, .writes = true};
}

struct Job {
  std::vector<RankState> ranks;
  Job& rank(std::vector<Unfinished> operations, bool resting = true) {
    ranks.push_back(
        {.rank = ranks.size(), .joined = true, .resting = resting, .operations = std::move(operations)});
    return *this;
  }
  [[nodiscard]] Ranks cycle() const { return find_cycle(ranks); }
};

} // namespace

BOOST_AUTO_TEST_CASE(ranks_that_wait_for_each_other) {
  BOOST_TEST(Job().rank({read_of(1)}).rank({read_of(0)}).cycle() == (Ranks{0, 1}));
  BOOST_TEST(Job().rank({read_of(0)}).cycle() == (Ranks{0}));
  BOOST_TEST(Job().rank({read_of(1)}).rank({read_of(2)}).rank({read_of(3)}).rank({read_of(1)}).cycle() ==
             (Ranks{1, 2, 3}));
  // Two ways from 0, of which one leads into the cycle; 1 waits for nobody.
  BOOST_TEST(
      Job().rank({read_of(1), read_of(2)}).rank({}, false).rank({read_of(3)}).rank({read_of(2)}).cycle() ==
      (Ranks{2, 3}));
}

BOOST_AUTO_TEST_CASE(ranks_that_do_not) {
  BOOST_TEST(Job().cycle().empty());
  BOOST_TEST(Job().rank({read_of(1)}).rank({read_of(2)}).rank({}).cycle().empty());
  BOOST_TEST(Job().rank({read_of(1)}).rank({read_of(0)}, false).cycle().empty()); // it calculates
  BOOST_TEST(Job().rank({read_of(7)}).cycle().empty());                           // whose host did not answer
  BOOST_TEST(Job().rank({read_of(-1)}).rank({read_of(0)}).cycle().empty());
  // What comes is under way.
  BOOST_TEST(Job().rank({read_of(1)}).rank({read_of(0), write_to(0)}).cycle().empty());
  // Kernels answer gets, whatever their programs wait for.
  const auto get_from = [](std::int32_t peer) {
    return Unfinished{.peer = peer, .tag = 1, .one_sided = true};
  };
  BOOST_TEST(Job().rank({get_from(1)}).rank({get_from(0)}).cycle().empty());
  Unfinished begun = read_of(1);
  begun.begun = true;
  BOOST_TEST(Job().rank({begun}).rank({read_of(0)}).cycle().empty());
}

BOOST_AUTO_TEST_CASE(writes_count_where_nothing_is_read) {
  BOOST_TEST(Job().rank({write_to(1)}).rank({write_to(0)}).cycle() == (Ranks{0, 1}));
  BOOST_TEST(Job().rank({write_to(1), read_of(2)}).rank({write_to(0)}).rank({}).cycle().empty());
  // A write with another tag, or to somebody else, is no answer.
  BOOST_TEST(Job().rank({read_of(1, 1)}).rank({read_of(0), write_to(0, 2)}).cycle() == (Ranks{0, 1}));
  BOOST_TEST(Job().rank({read_of(1, -1)}).rank({read_of(0), write_to(0, 2)}).cycle().empty());
}

BOOST_AUTO_TEST_CASE(states_travel) {
  RankState state{.rank = 3,
                  .process = 4711,
                  .host = "b",
                  .program = "ring",
                  .joined = true,
                  .resting = true,
                  .operations = {read_of(-1, -1), write_to(2, 7)},
                  .more = 5,
                  .backlog = {.to_neighbours = 1, .kernel_held = UINT64_MAX}};
  state.operations[0].begun = true;
  state.operations[1].in_place = 4;
  state.operations[1].age_ms = UINT64_MAX;
  const auto read = [](const nlohmann::json& from) {
    RankState got;
    return control::take_value(from, got, control::no_limit) ? std::optional(got) : std::nullopt;
  };
  nlohmann::json json;
  control::put_value(json, state);
  BOOST_TEST((read(json) == state));
  for (const auto& [key, value] : json.items()) {
    nlohmann::json wrong = json;
    wrong[key] = -3;
    BOOST_TEST(!read(wrong), key);
    wrong.erase(key);
    BOOST_TEST(!read(wrong), key);
  }
  for (const auto& [key, value] : json["unfinished"][0].items()) {
    nlohmann::json wrong = json;
    wrong["unfinished"][0][key] = -2;
    BOOST_TEST(!read(wrong), key);
  }
  BOOST_TEST(json["backlog"].size() == 2); // what is zero does not travel
  for (const auto& [key, value] : json["backlog"].items()) {
    nlohmann::json wrong = json;
    wrong["backlog"][key] = -2;
    BOOST_TEST(!read(wrong), key);
  }
  BOOST_TEST(!read(nlohmann::json::array()));
}

BOOST_AUTO_TEST_CASE(a_control_segment_is_looked_at) {
  const auto control = std::make_unique<shm::Control>();
  const auto post = [&](std::uint32_t slot, shm::Phase phase, std::int32_t peer, std::uint32_t age) {
    shm::Operation& operation = control->operations[slot];
    operation.source = peer;
    operation.tag = 7;
    operation.total = 100;
    operation.front = 30;
    operation.posted = coarse_ms() - age;
    operation.state = shm::state_word(1, phase);
  };
  RankState seen;
  shm::Tables tables(*control);
  shm::look_at(*control, tables, most_unfinished, seen);
  BOOST_TEST((seen.joined && !seen.resting && seen.operations.empty() && seen.more == 0));
  post(0, shm::Phase::pending, 1, 5000);
  post(5, shm::Phase::done, 1, 9000);
  post(shm::read_slots - 1, shm::Phase::begun, -5, 7000); // nonsense that a program may write
  post(shm::read_slots, shm::Phase::pending, 2, 6000);
  post(7, shm::Phase::pending, 3, 8000);
  control->operations[7].total = shm::probe_total;
  control->header.program_asleep = 1;
  shm::look_at(*control, tables, most_unfinished, seen);
  BOOST_TEST(seen.resting);
  BOOST_REQUIRE(seen.operations.size() == 4u); // the oldest first
  BOOST_TEST((seen.operations[0].probes && seen.operations[0].bytes == 0));
  seen.operations.erase(seen.operations.begin());
  BOOST_TEST((seen.operations[0].peer == -1 && seen.operations[0].begun));
  BOOST_TEST(
      (seen.operations[1].peer == 2 && seen.operations[1].writes && seen.operations[1].in_place == 30));
  BOOST_TEST(
      (seen.operations[2].peer == 1 && seen.operations[2].age_ms >= 5000 && seen.operations[2].tag == 7));
  shm::look_at(*control, tables, 2, seen);
  BOOST_TEST((seen.operations.size() == 2u && seen.more == 2));
  post(6, shm::Phase::pending, 4, 9000);
  control->operations[6].departure_or_data = 1;
  control->operations[6].tag = 0x8000'0000'ffff'fff0;
  shm::look_at(*control, tables, 1, seen);
  BOOST_TEST((seen.operations[0].one_sided &&
              shm::tag_of(seen.operations[0].context, seen.operations[0].tag) == 0x8000'0000'ffff'fff0));
  post(6, shm::Phase::done, 4, 9000);
  // Behind the first block no more is looked at than has been used.
  std::vector<std::byte> block(shm::bytes_of_block(1) + 64);
  tables.add(block.data() + (64 - reinterpret_cast<std::uintptr_t>(block.data()) % 64));
  const std::uint32_t write = shm::first_slot(1) + shm::slots_in(1) / 2;
  for (const std::uint32_t slot : {write, write + 1}) {
    tables.operation(slot).source = 4;
    tables.operation(slot).posted = coarse_ms() - 10'000;
    tables.operation(slot).state = shm::state_word(1, shm::Phase::pending);
  }
  control->used[0][1] = 1;
  shm::look_at(*control, tables, 2, seen);
  BOOST_TEST((seen.operations.size() == 2u && seen.more == 3));
  BOOST_TEST((seen.operations[0].peer == 4 && seen.operations[0].writes));
}

BOOST_AUTO_TEST_SUITE_END()

} // namespace parc
