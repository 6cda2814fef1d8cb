// SPDX-License-Identifier: BSD-3-Clause
// parc_alloc: where blocks lie, when segments come and go.
#include "fake_program.hpp"

#include <boost/test/unit_test.hpp>

using namespace parc::test;

namespace {

constexpr std::size_t mib = std::size_t{1} << 20;

bool is_aligned(const void* memory, std::size_t to) {
  return reinterpret_cast<std::uintptr_t>(memory) % to == 0;
}

} // namespace

BOOST_AUTO_TEST_SUITE(client_arena)

BOOST_AUTO_TEST_CASE(blocks_are_aligned_and_apart) {
  FakeProgram program;
  std::map<char*, std::size_t> blocks;
  for (std::size_t bytes : {0, 1, 63, 64, 65, 4095, 4096, 4097, 100'000}) {
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

BOOST_AUTO_TEST_CASE(memory_of_a_segment_that_went_is_bounced_again) {
  FakeProgram program;
  char* const large = program.alloc(8 * mib);
  parc_free(program.p, large);
  (void)program.alloc(40 * mib);
  char heap[2000] = "heap";
  BOOST_TEST(parc_write(program.p, 0, 0, heap, sizeof heap) == PARC_OK);
  BOOST_TEST(parc_read(program.p, 0, 0, heap, sizeof heap, nullptr) == PARC_OK);
}

// Segments of which every one is in use: at the limit there is an answer, and everything goes on.
BOOST_AUTO_TEST_CASE(a_program_has_thirty_two_segments_at_most) {
  FakeProgram program;
  std::vector<void*> blocks;
  // Each block needs a segment of its own size: twice all before it, as segments grow by the same.
  std::size_t total = 0;
  while (void* const block = parc_alloc(program.p, std::max(total, 4 * mib))) {
    blocks.push_back(block);
    total += std::max(total, 4 * mib);
    BOOST_REQUIRE(blocks.size() <= 32u);
    if (total > 1024 * mib) break; // address space is not what is tested
  }
  BOOST_TEST(program.kernel.segments() == blocks.size());
  BOOST_TEST(parc_alloc(program.p, SIZE_MAX / 2) == static_cast<void*>(nullptr));
  BOOST_TEST(std::string(parc_error_detail()).find("cannot allocate") != std::string::npos);
  for (void* const block : blocks) parc_free(program.p, block);
}

BOOST_AUTO_TEST_SUITE_END()
