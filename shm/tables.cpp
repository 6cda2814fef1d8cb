// SPDX-License-Identifier: BSD-3-Clause
#include "shm/tables.hpp"

namespace parc::shm {

void Tables::add(std::byte* memory) {
  const unsigned number = blocks_.load(std::memory_order_relaxed) + 1;
  assert(number <= most_blocks);
  const std::uint32_t slots = slots_in(number);
  Block& block = at_[number - 1];
  block.operations = reinterpret_cast<Operation*>(memory);
  block.times = reinterpret_cast<Times*>(block.operations + slots);
  block.owners = reinterpret_cast<std::atomic<std::uint64_t>*>(block.times + slots);
  block.finished = block.owners + slots / 2;
  block.finished_words = block.finished + slots / 64;
  assert(reinterpret_cast<std::byte*>(block.finished_words + slots / 4096) ==
         memory + bytes_of_block(number));
  blocks_.store(number, std::memory_order_release);
}

} // namespace parc::shm
