// SPDX-License-Identifier: BSD-3-Clause
// What the kernel knows of a program's operations, by slot. Made in runs when their slots are first used:
// most programs use few of their two thousand, and a kernel may have thousands of programs.
#pragma once

#include "daemon/program/extents.hpp"
#include "shm/slots.hpp"

#include <array>
#include <cassert>
#include <cstdint>
#include <memory>
#include <vector>

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
    bool probes = false;      // its end brings no message: it probes, or gets
    bool claims = false;
    bool late = false;   // it has no memory yet
    bool queued = false; // the program hears of its end in shm::Control::finished
    shm::With with = shm::With::nobody;
    std::uint64_t unplaced = 0; // generation of a read: what is published of its memory is no longer so
    std::uint64_t tag = 0;      // the message's, of a read that its writer has claimed
  };

  // The program's tables have another block.
  void grow(unsigned block) { runs_.resize(shm::end_of_block(block) / run_slots); }

  // A slot that there is.
  Slot& operator[](std::uint64_t number) {
    assert(number / run_slots < runs_.size());
    std::unique_ptr<Run>& run = runs_[number / run_slots];
    if (run == nullptr) run = std::make_unique<Run>();
    return (*run)[number % run_slots];
  }

  // Takes the place of a new operation; none: it is not free, or its generation has been used.
  // `again`: it may be the one that was there last.
  Slot* take(std::uint64_t id, bool again = false) {
    Slot& slot = (*this)[shm::slot_of(id)];
    const std::uint64_t generation = shm::generation_of(id);
    if (slot.busy || generation < slot.generation + (again ? 0 : 1)) return nullptr;
    const std::uint64_t unplaced = slot.unplaced; // of this one, perhaps, before it was known here
    slot = Slot();
    slot.unplaced = unplaced;
    slot.generation = shm::generation_of(id);
    slot.busy = true;
    return &slot;
  }
  // None: it is over, or never was.
  Slot* find(std::uint64_t id) {
    const std::uint64_t number = shm::slot_of(id);
    if (number / run_slots >= runs_.size() || runs_[number / run_slots] == nullptr) return nullptr;
    Slot& slot = (*this)[number];
    return slot.busy && slot.generation == shm::generation_of(id) ? &slot : nullptr;
  }

private:
  static constexpr std::size_t run_slots = 32;
  using Run = std::array<Slot, run_slots>;
  std::vector<std::unique_ptr<Run>> runs_{shm::control_slot / run_slots + 1};
};

} // namespace parc::daemon
