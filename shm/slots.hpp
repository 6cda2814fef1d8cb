// SPDX-License-Identifier: BSD-3-Clause
// Which slot is what, and where its operation lies. Pure.
//
//   slots below control_slot               the first block, in the control segment: reads, then writes
//   control_slot                           the same; the program's questions about itself
//   [control_slot << k, control_slot << k + 1)   block k, from 1 on, a segment of its own: the same halves
//
// Each block has twice the slots of the one before, so a few are enough for any program, and none moves.
#pragma once

#include "shm/layout.hpp"

#include <bit>
#include <cassert>
#include <cstdint>

namespace parc::shm {

static_assert(std::has_single_bit(control_slot) && read_slots == write_slots);

[[nodiscard]] constexpr unsigned block_of(std::uint64_t slot) { // of a slot that can be
  return slot <= control_slot ? 0
                              : static_cast<unsigned>(std::bit_width(slot) - std::bit_width(control_slot));
}
// Of block 0 without control_slot.
[[nodiscard]] constexpr std::uint32_t slots_in(unsigned block) {
  return control_slot << block;
}
[[nodiscard]] constexpr std::uint32_t first_slot(unsigned block) {
  return block == 0 ? 0 : control_slot << block;
}
[[nodiscard]] constexpr std::uint32_t end_of_block(unsigned block) {
  return first_slot(block) + slots_in(block);
}
static_assert(end_of_block(most_blocks) == 1U << slot_bits);

// With so many blocks behind the first one there is that slot, and it is for messages.
[[nodiscard]] constexpr bool is_slot(std::uint64_t number, unsigned blocks) {
  return number < control_slot || (number >= first_slot(1) && number < end_of_block(blocks));
}
static_assert(!is_slot(control_slot, most_blocks) && !is_slot(first_slot(1), 0) && is_slot(first_slot(1), 1));

// Of a slot that is_slot, or control_slot, which is neither.
[[nodiscard]] constexpr bool is_write(std::uint64_t slot) {
  if (slot <= control_slot) return slot >= read_slots && slot < control_slot;
  return (slot >> (std::bit_width(slot) - 2) & 1) != 0;
}
[[nodiscard]] constexpr bool is_control(std::uint64_t slot) {
  return slot == control_slot;
}
[[nodiscard]] constexpr bool is_read(std::uint64_t slot) {
  return !is_control(slot) && !is_write(slot);
}
static_assert(!is_write(first_slot(3)) && is_write(first_slot(3) + slots_in(3) / 2));

// Of the reads, or of the writes, without a gap from 0 on.
[[nodiscard]] constexpr std::uint32_t index_of(std::uint64_t slot) {
  const unsigned block = block_of(slot);
  const auto half = slots_in(block) / 2;
  return half - read_slots + (static_cast<std::uint32_t>(slot) & (half - 1));
}
static_assert(index_of(read_slots - 1) == read_slots - 1 && index_of(first_slot(1)) == read_slots &&
              index_of(first_slot(2)) == index_of(end_of_block(1) - 1) + 1);
inline constexpr std::uint32_t most_reads = index_of(end_of_block(most_blocks) - 1) + 1; // and writes

} // namespace parc::shm
