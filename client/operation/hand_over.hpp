// SPDX-License-Identifier: BSD-3-Clause
// Letting the program have a write's memory back before the network has taken it: what is not acknowledged is
// copied into the arena, from the end that the network reaches last, until that meets the acknowledgement,
// and the kernel is asked to go on from the copy. When it confirms, nothing names the program's memory any
// more.
//
// Invariant: every byte of the message that is not acknowledged when the kernel takes the hand-over lies in
// the memory that it names; what was acknowledged before the copy reached it is never read again.
#pragma once

#include "client/operation/operations.hpp"
#include "client/session/ring.hpp"

#include <array>
#include <atomic>
#include <chrono>

namespace parc::client {

class HandOver {
public:
  HandOver(Operations& operations, Arena& arena, CopyRoom& room, Ring& ring, Sleep& sleep,
           unsigned copy_ns_per_kib)
      : operations_(operations), arena_(arena), room_(room), ring_(ring), sleep_(sleep),
        copy_ns_per_kib_(copy_ns_per_kib) {}

  // How long to wait instead: as long as copying what is not acknowledged would take. The kernel needs longer
  // for its copies of memory that it has not mapped.
  [[nodiscard]] Clock::duration patience(Slot slot);

  // Whether a write is to go on waiting although it could be copied, or is: much is held as copies, and its
  // reader takes some of what is for it. Who writes more than that would fill the host's memory. Where it
  // takes nothing, as where two write to each other before they read, the program goes on all the same.
  struct Pace { // of one wait
    std::uint64_t taken = UINT64_MAX;
    Clock::time_point since{};
  };
  [[nodiscard]] bool keeps_pace(Slot slot, Pace& pace);
  [[nodiscard]] bool may_copy(Slot slot) const;                // as far as is known without trying
  static constexpr std::chrono::milliseconds look_at_pace{10}; // between two questions

  // Makes the place for a copy, which goes with the slot. False: the write is bounced, there is no room, or
  // its peer does not answer; it must be waited for.
  [[nodiscard]] bool prepare(Slot slot);

  // Of a prepared write, once. True: the kernel has confirmed. False: nothing is left to copy, or the kernel
  // has gone; wait for the network. Async-signal-safe but for a handler that interrupts Ring::push.
  [[nodiscard]] bool perform(parc_op id, Slot slot, std::span<const iovec> pieces);

private:
  struct Range {
    std::uint64_t begin, end; // of the message
    [[nodiscard]] std::uint64_t size() const { return end - begin; }
  };
  [[nodiscard]] Range unacknowledged(Slot slot);
  [[nodiscard]] Range copy_downwards(Slot slot, std::span<const iovec> pieces, std::byte* block, Range due);
  [[nodiscard]] Range copy_upwards(Slot slot, std::span<const iovec> pieces, std::byte* block, Range due);

  Operations& operations_;
  Arena& arena_;
  CopyRoom& room_;
  Ring& ring_;
  Sleep& sleep_;
  const unsigned copy_ns_per_kib_;
  struct Standstill {
    std::atomic<std::uint64_t> at = UINT64_MAX; // of what was taken
  };
  std::array<Standstill, 16> standstills_; // by rank; where there are more, some share a place
};

} // namespace parc::client
