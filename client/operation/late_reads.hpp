// SPDX-License-Identifier: BSD-3-Clause
// Reads that have no memory of the arena yet. Where there is none for a read's bounce it is begun without:
// it is matched as any other, in its order, and its message then waits for memory (shm::RequestKind::place),
// or goes straight to where it is wanted, where it lies in a neighbour's cell. So what has no message holds
// nothing that others need; and where a message is there, or a write is to be begun, and no memory is left,
// reads that are done give theirs, whose bytes go to where they were wanted, and reads that have no message
// (RequestKind::unplace). A write leaves room for the longest of those without memory. What is left of a wait
// for memory is one for messages under way; when it has been in vain for a minute, a read fails and its
// message is lost, and a sentence says so: two programs may have filled their memory with writes that neither
// reads.
//
// Whoever rests in libparc, or collects completions, places all that can be placed. Threads: any; of a signal
// handler place_from_what_is_there alone.
#pragma once

#include "client/operation/control_calls.hpp"
#include "client/operation/operations.hpp"

#include <atomic>

namespace parc::client {

class LateReads {
public:
  LateReads(Operations& operations, Arena& arena, ControlCalls& control_calls, Ring& ring, Sleep& sleep,
            int rank)
      : operations_(operations), arena_(arena), control_calls_(control_calls), ring_(ring), sleep_(sleep),
        rank_(rank) {}

  // One has its message, and could be given memory: `own` is a slot that the caller has taken, which is
  // looked at, too.
  static constexpr Slot none = UINT32_MAX;
  [[nodiscard]] bool wanting(Slot own = none) const { return operations_.any_late() && find(own); }

  // Gives memory to those that have their message. False: there is not enough; it is worth another try after
  // between_tries.
  static constexpr auto between_tries = std::chrono::milliseconds(10);
  [[nodiscard]] bool serve(Slot own = none) { return !operations_.any_late() || serve_all(own); }
  // The same of one, as far as no lock and no kernel is needed.
  void place_from_what_is_there(parc_op id);

  // Operations::allocate, also of what reads give. PARC_EAGAIN: other operations have enough, which they
  // leave.
  [[nodiscard]] Result<void*> allocate(std::size_t bytes);
  // The same for a write.
  [[nodiscard]] Result<void*> allocate_for_write(std::size_t bytes);

private:
  [[nodiscard]] bool find(Slot own) const;
  [[nodiscard]] bool serve_all(Slot own);
  [[nodiscard]] bool place(Slot slot);
  void place(Slot slot, void* block, std::uint64_t bytes);
  [[nodiscard]] std::uint64_t longest() const;
  [[nodiscard]] bool empty_one();
  [[nodiscard]] bool take_back_one();
  [[nodiscard]] bool take_back(parc_op id);
  [[nodiscard]] bool take_back_local(parc_op id);
  [[nodiscard]] bool ask_back(parc_op id, shm::With with);
  void tell_others();
  struct Waiting { // a read that has memory and no message
    parc_op id;
    std::uint32_t posted;
  };
  [[nodiscard]] std::optional<Waiting> last_to_expect(const std::optional<Waiting>& before) const;
  // Whether operations may leave so much: no; perhaps; their own memory is enough.
  enum class Hope : std::uint8_t { none, some, enough };
  // `own`: of what is in transit.
  [[nodiscard]] Hope hope_for(std::uint64_t bytes, Slot than, std::uint64_t own = 0);
  [[nodiscard]] Result<void*> take(std::size_t bytes, std::uint64_t own = 0);
  void refuse(Error& why, Hope hope);
  [[nodiscard]] bool in_vain(Slot slot, std::uint64_t bytes);
  [[nodiscard]] static bool has_passed(std::atomic<std::uint32_t>& since, std::uint32_t ms);

  Operations& operations_;
  Arena& arena_;
  ControlCalls& control_calls_;
  Ring& ring_;
  Sleep& sleep_;
  const int rank_;
  std::atomic<std::uint64_t> in_transit_ = 0;    // bytes that a thread is about to give back, or to use
  std::atomic<std::uint32_t> short_since_ = 0;   // coarse_ms(); 0: what there was to place was placed
  std::atomic<std::uint32_t> refused_since_ = 0; // the same; 0: what was asked for last was there
};

} // namespace parc::client
