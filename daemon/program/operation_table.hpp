// SPDX-License-Identifier: BSD-3-Clause
// What the kernel knows of a program's operations, by slot. Made in blocks when their slots are first used:
// most programs use few of their two thousand, and a kernel may have thousands of programs.
#pragma once

#include "daemon/program/extents.hpp"
#include "shm/layout.hpp"

#include <array>
#include <cstdint>
#include <memory>

namespace parc::daemon {

class OperationTable {
public:
  struct Slot {
    std::uint64_t generation = 0;
    std::uint64_t handle = 0; // in the engine
    std::uint64_t total = 0;
    Extents::Used used;
    std::uint64_t release = 0; // its number while it is released and has not begun
    bool busy = false;
    bool begun = false;
    bool handed_over = false; // once is enough, and each time may cut its memory into one piece more
    bool probes = false;      // its end brings no message
    bool claims = false;
    bool queued = false; // the program hears of its end in shm::Control::finished
    shm::With with = shm::With::nobody;
    std::uint64_t tag = 0; // the message's, of a read that its writer has claimed
  };

  // Below shm::operation_slots.
  Slot& operator[](std::uint64_t number) {
    std::unique_ptr<Block>& block = blocks_[number / block_slots];
    if (block == nullptr) block = std::make_unique<Block>();
    return (*block)[number % block_slots];
  }

  // Takes the place of a new operation; none: it is not free, or its generation has been used.
  // `again`: it may be the one that was there last.
  Slot* take(std::uint64_t id, bool again = false) {
    Slot& slot = (*this)[shm::slot_of(id)];
    const std::uint64_t generation = shm::generation_of(id);
    if (slot.busy || generation < slot.generation + (again ? 0 : 1)) return nullptr;
    slot = Slot();
    slot.generation = shm::generation_of(id);
    slot.busy = true;
    return &slot;
  }
  // None: it is over, or never was.
  Slot* find(std::uint64_t id) {
    const std::uint64_t number = shm::slot_of(id);
    if (number >= shm::operation_slots || blocks_[number / block_slots] == nullptr) return nullptr;
    Slot& slot = (*this)[number];
    return slot.busy && slot.generation == shm::generation_of(id) ? &slot : nullptr;
  }

private:
  static constexpr std::size_t block_slots = 32;
  using Block = std::array<Slot, block_slots>;
  std::array<std::unique_ptr<Block>, (shm::operation_slots + block_slots - 1) / block_slots> blocks_;
};

} // namespace parc::daemon
