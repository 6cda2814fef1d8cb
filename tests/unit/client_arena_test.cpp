// SPDX-License-Identifier: BSD-3-Clause
// parc_alloc: where blocks lie, when segments come and go.
#include "fake_program.hpp"

#include <algorithm>
#include <boost/test/unit_test.hpp>
#include <mutex>
#include <set>
#include <thread>

BOOST_AUTO_TEST_SUITE(client_arena)

using namespace parc::test;

namespace {

constexpr std::size_t mib = std::size_t{1} << 20;

bool is_aligned(const void* memory, std::size_t to) {
  return reinterpret_cast<std::uintptr_t>(memory) % to == 0;
}

} // namespace

BOOST_AUTO_TEST_CASE(blocks_are_aligned_and_apart) {
  FakeProgram program;
  std::map<char*, std::size_t> blocks;
  for (const auto bytes : std::initializer_list<std::size_t>{0, 1, 63, 64, 65, 4095, 4096, 4097, 100'000}) {
    char* const block = program.alloc(bytes);
    BOOST_TEST(is_aligned(block, bytes < 4096 ? 64 : 4096));
    std::fill(block, block + bytes, 'x');
    blocks.emplace(block, bytes);
  }
  for (auto next = blocks.begin(), block = next++; next != blocks.end(); block = next++)
    BOOST_TEST((block->first + block->second <= next->first));
  for (const auto& block : blocks) parc_free(program.p, block.first);
  parc_free(program.p, nullptr);
  BOOST_TEST(program.kernel.segments() == 1u);
}

BOOST_AUTO_TEST_CASE(freed_memory_is_used_again) {
  FakeProgram program;
  for (int i = 0; i < 100; ++i) parc_free(program.p, program.alloc(3 * mib));
  BOOST_TEST(program.kernel.segments() == 1u);
}

BOOST_AUTO_TEST_CASE(unused_segments_are_given_back_when_another_must_be_made) {
  FakeProgram program;
  char* const kept = program.alloc(100);
  char* const large = program.alloc(8 * mib);
  BOOST_TEST(program.kernel.segments() == 2u);
  parc_free(program.p, large);
  BOOST_TEST(program.kernel.segments() == 2u);
  BOOST_TEST(program.alloc(40 * mib)[0] == 0);
  BOOST_TEST(program.kernel.segments() == 2u); // the one of 8 MiB has gone
  kept[0] = 'k';
}

BOOST_AUTO_TEST_CASE(a_large_segment_that_nobody_uses_any_more_is_given_back) {
  FakeProgram program;
  char* const kept = program.alloc(100);
  for (const std::size_t bytes : {100 * mib, 200 * mib}) parc_free(program.p, program.alloc(bytes));
  parc_status status;
  const parc_envelope nobody = parc_envelope_of(0, 0, 1);
  while (program.kernel.segments() != 1) BOOST_TEST(parc_iprobe(program.p, &nobody, &status) == 0);
  kept[0] = 'k';
  // What is needed again is no larger than it must be, and little is kept.
  const auto maps = program.kernel.maps();
  for (int i = 0; i < 100; ++i) {
    parc_free(program.p, program.alloc(20 * mib));
    BOOST_TEST(parc_iprobe(program.p, &nobody, &status) == 0);
  }
  BOOST_TEST(program.kernel.maps() == maps + 1);
}

BOOST_AUTO_TEST_CASE(memory_of_a_segment_that_went_is_bounced_again) {
  FakeProgram program;
  char* const large = program.alloc(8 * mib);
  parc_free(program.p, large);
  (void)program.alloc(40 * mib);
  char heap[2000] = "heap";
  BOOST_TEST(parc_write(program.p, 0, 0, heap, sizeof heap) == PARC_OK);
  BOOST_TEST(parc_read(program.p, 0, 0, heap, sizeof heap, nullptr) == PARC_OK);
}

BOOST_AUTO_TEST_CASE(few_segments_are_enough_for_much_memory) {
  FakeProgram program;
  std::vector<void*> blocks(200);
  for (auto& block : blocks) block = program.alloc(4 * mib);
  BOOST_TEST(program.kernel.segments() <= 9u);
  for (void* const block : blocks) parc_free(program.p, block);
}

BOOST_AUTO_TEST_CASE(small_blocks_are_aligned_and_apart_and_used_again) {
  FakeProgram program;
  const auto take_all = [&] {
    std::set<char*> blocks;
    for (std::size_t bytes = 0; bytes <= 4000; ++bytes) {
      char* const block = program.alloc(bytes % 1025);
      BOOST_TEST_REQUIRE(is_aligned(block, 64));
      const auto next = blocks.insert(block).first;
      BOOST_TEST_REQUIRE((next == blocks.begin() || *std::prev(next) + 64 <= block));
      std::fill(block, block + bytes % 1025, 'x');
    }
    return blocks;
  };
  const auto first = take_all();
  BOOST_TEST_REQUIRE(first.size() == 4001u);
  for (char* const block : first) parc_free(program.p, block);
  for (char* const block : first) std::fill(block, block + 64, '\xff'); // wrong, and yet breaks nothing
  BOOST_TEST((take_all() == first));
  BOOST_TEST(program.kernel.segments() == 1u);
}

BOOST_AUTO_TEST_CASE(small_blocks_of_many_threads_are_apart) {
  FakeProgram program;
  std::mutex lock;
  std::vector<std::pair<char*, char>> all;
  const auto work = [&](char mark) {
    for (std::size_t i = 0; i < 3000; ++i) {
      const std::size_t bytes = 1 + i % 1025;
      auto* const block = static_cast<char*>(parc_alloc(program.p, bytes));
      std::fill(block, block + bytes, mark);
      std::pair<char*, char> other{nullptr, 0};
      {
        const std::lock_guard hold(lock);
        if (i % 3 == 0 && !all.empty()) other = all[i % all.size()]; // of any thread
        if (other.first != nullptr)
          all[i % all.size()] = {block, mark};
        else
          all.emplace_back(block, mark);
      }
      if (other.first != nullptr && other.first[0] == other.second) parc_free(program.p, other.first);
    }
  };
  std::vector<std::thread> threads;
  for (const char mark : {'a', 'b', 'c'}) threads.emplace_back(work, mark);
  for (auto& each : threads) each.join();
  BOOST_TEST(all.size() < 9000u);
  std::set<char*> different;
  for (const auto& [block, mark] : all) {
    BOOST_TEST_REQUIRE(block[0] == mark);
    BOOST_TEST_REQUIRE(different.insert(block).second);
  }
}

BOOST_AUTO_TEST_CASE(slabs_without_a_piece_in_use_hold_no_segment) {
  FakeProgram program;
  std::vector<char*> blocks;
  while (program.kernel.segments() < 3) blocks.push_back(program.alloc(1024));
  for (char* const block : blocks) parc_free(program.p, block);
  (void)program.alloc(100 * mib);
  BOOST_TEST(program.kernel.segments() == 2u); // and the first, for small blocks
}

BOOST_AUTO_TEST_CASE(where_there_is_no_room_for_a_slab_small_blocks_are_had_all_the_same) {
  FakeProgram program;
  (void)program.alloc(4 * mib - 100'000);
  char* const small = program.alloc(8);
  BOOST_TEST(is_aligned(small, 64));
  BOOST_TEST(program.kernel.segments() == 1u);
  parc_free(program.p, small);
  BOOST_TEST((program.alloc(8) == small));
}

BOOST_AUTO_TEST_CASE(what_cannot_be_had_gets_a_sentence) {
  FakeProgram program;
  BOOST_TEST(parc_alloc(program.p, SIZE_MAX / 2) == static_cast<void*>(nullptr));
  BOOST_TEST(std::string(parc_error_detail()).find("cannot allocate") != std::string::npos);
  char byte = 0;
  BOOST_TEST(parc_write(program.p, 0, 0, &byte, 1) == PARC_OK);
}

BOOST_AUTO_TEST_SUITE_END()
