// SPDX-License-Identifier: BSD-3-Clause
#include "shm/tables.hpp"

#include <boost/test/unit_test.hpp>
#include <memory>
#include <set>
#include <thread>
#include <vector>

namespace parc::shm {
namespace {

BOOST_AUTO_TEST_SUITE(tables)

// A control segment and blocks behind it, as a program has them.
struct All {
  explicit All(unsigned blocks) : tables(*control) {
    for (unsigned block = 1; block <= blocks; ++block) {
      auto* const lines = new Line[(bytes_of_block(block) + sizeof(Line) - 1) / sizeof(Line)]();
      memory.emplace_back(lines);
      tables.add(reinterpret_cast<std::byte*>(lines));
    }
  }
  std::set<std::uint32_t> taken() {
    std::set<std::uint32_t> slots;
    tables.take_finished([&](std::uint32_t slot) { BOOST_TEST(slots.insert(slot).second); });
    return slots;
  }
  struct alignas(64) Line {
    std::byte bytes[64];
  };
  std::unique_ptr<Control> control = std::make_unique<Control>();
  std::vector<std::unique_ptr<Line[]>> memory;
  Tables tables;
};

BOOST_AUTO_TEST_CASE(every_slot_has_a_place_of_its_own) {
  const All all(3);
  std::set<const void*> operations, times, claims;
  std::set<std::uint32_t> reads, writes;
  for (std::uint32_t slot = 0; slot < end_of_block(3) + 10; ++slot) {
    if (!all.tables.has(slot)) continue;
    BOOST_TEST(is_read(slot) != is_write(slot));
    operations.insert(&all.tables.operation(slot));
    times.insert(&all.tables.times(slot));
    if (is_read(slot) && slot > control_slot) claims.insert(&all.tables.owner(slot));
    (is_read(slot) ? reads : writes).insert(index_of(slot));
  }
  const std::size_t half = read_slots * 15;
  BOOST_TEST((reads.size() == half && *reads.begin() == 0 && *reads.rbegin() == half - 1)); // without a gap
  BOOST_TEST((writes == reads));
  BOOST_TEST(
      (operations.size() == 2 * half && times.size() == 2 * half && claims.size() == half - read_slots));
  BOOST_TEST((!all.tables.has(control_slot) && !all.tables.has(end_of_block(3)) && !all.tables.has(~0ULL)));
  BOOST_TEST((!is_read(control_slot) && !is_write(control_slot)));
}

BOOST_AUTO_TEST_CASE(what_ends_is_taken_once) {
  All all(2);
  BOOST_TEST(all.taken().empty());
  const std::set<std::uint32_t> ended{0,    1,    63,          64,   1023,        1024,        2047,
                                      4096, 4097, 4096 + 4095, 8192, 8192 + 4096, 8192 + 4160, 8192 + 8191};
  for (const std::uint32_t slot : ended) all.tables.note_finished(slot);
  BOOST_TEST((all.taken() == ended));
  BOOST_TEST(all.taken().empty());
  all.tables.note_finished(8192 + 4160);
  BOOST_TEST((all.taken() == std::set<std::uint32_t>{8192 + 4160}));
}

BOOST_AUTO_TEST_CASE(nonsense_bits_name_no_slot_that_is_not_there) {
  All all(1);
  for (auto& word : all.control->finished) word = ~std::uint64_t{0};
  all.control->finished_blocks = ~std::uint64_t{0};
  for (const std::uint32_t slot : all.taken()) BOOST_TEST(all.tables.has(slot));
}

// Two set, one takes: nothing is lost between the levels.
BOOST_AUTO_TEST_CASE(nothing_is_lost_while_others_look) {
  All all(1);
  constexpr std::uint64_t rounds = 20'000;
  std::atomic<std::uint64_t> seen[2]{};
  const auto end_again = [&](std::uint32_t which) {
    for (std::uint64_t round = 1; round <= rounds; ++round) {
      all.tables.note_finished(first_slot(1) + which);
      while (seen[which].load() < round) std::this_thread::yield();
    }
  };
  std::thread one(end_again, 0), other(end_again, 1);
  while (seen[0].load() < rounds || seen[1].load() < rounds) {
    all.tables.take_finished([&](std::uint32_t slot) { ++seen[slot % 2]; });
    std::this_thread::yield();
  }
  one.join();
  other.join();
  BOOST_TEST((seen[0] == rounds && seen[1] == rounds));
}

BOOST_AUTO_TEST_SUITE_END()

} // namespace
} // namespace parc::shm
