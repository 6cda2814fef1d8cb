// SPDX-License-Identifier: BSD-3-Clause
// The program's tables of operations: both halves of each, which slots are free, and how there come to be
// more. They grow by blocks (shm/tables.hpp), which the kernel has attached before their first slot is given
// out; a block stays, and no half ever moves, as signal handlers and page faults' handlers look at them.
//
// Slots of the lowest block that has a free one come first, and of these the one that was used last: a
// program that has few operations under way touches few pages, whatever it once had.
//
// Threads: any; take() and give() one at a time, which their caller sees to. The rest but grow() is
// async-signal-safe.
#pragma once

#include "client/base/own_memory.hpp"
#include "client/operation/control_calls.hpp"
#include "client/operation/entry.hpp"
#include "shm/segment.hpp"
#include "shm/tables.hpp"

#include <array>
#include <mutex>
#include <optional>
#include <vector>

namespace parc::client {

class OperationTable {
public:
  OperationTable(shm::Control& control, ControlCalls& control_calls);
  OperationTable(const OperationTable&) = delete;
  OperationTable& operator=(const OperationTable&) = delete;
  ~OperationTable();

  [[nodiscard]] bool has(std::uint64_t slot) const { return tables_.has(slot); }
  // Of a slot that there is.
  [[nodiscard]] Entry& operator[](Slot slot) const {
    return slot < shm::control_slot ? first_[slot] : of_block(slot);
  }
  [[nodiscard]] const shm::Tables& shared() const { return tables_; }

  [[nodiscard]] std::optional<Slot> take(bool writes);
  void give(Slot slot);
  // There are more free ones than with so many `blocks`. Errors: PARC_EAGAIN (that is all, or all that there
  // is memory for), PARC_EKERNEL. Waits for the kernel's answer, never for an operation.
  [[nodiscard]] Result<void> grow(unsigned blocks);

private:
  struct Half { // the reads of a block, or its writes
    std::vector<Slot> given;
    Slot first = 0, fresh = 0, end = 0; // from `fresh` on they have never been used
  };
  [[nodiscard]] Entry& of_block(Slot slot) const {
    const unsigned block = shm::block_of(slot);
    return later_[block - 1][slot - shm::first_slot(block)];
  }
  void open(unsigned block);
  [[nodiscard]] Result<void> make_block(unsigned number);

  shm::Control& control_;
  ControlCalls& control_calls_;
  shm::Tables tables_;
  Entry* const first_;
  std::array<Entry*, shm::most_blocks> later_{}; // each before the tables have its block
  std::mutex growing_;
  std::vector<shm::Segment> segments_; // under growing_

  std::array<std::array<Half, 2>, shm::most_blocks + 1> halves_; // with those of the caller's lock
  std::atomic<unsigned> opened_ = 0;                             // of blocks: their halves are made
};

} // namespace parc::client
