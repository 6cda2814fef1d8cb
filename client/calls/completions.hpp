// SPDX-License-Identifier: BSD-3-Clause
// The completion queue: operations that nobody waits for by their ids. The kernel sets a bit for each that it
// has finished; a write whose bytes all lie in the arena is finished when it is started; reads that may be
// released early are looked at one by one. Threads: any. Not async-signal-safe.
#pragma once

#include "client/calls/waiter.hpp"

#include <vector>

namespace parc::client {

class Completions {
public:
  Completions(shm::Control& control, Operations& operations, Waiter& waiter, Guards& guards, Sleep& sleep,
              LateReads& late_reads)
      : control_(control), operations_(operations), waiter_(waiter), guards_(guards), sleep_(sleep),
        late_reads_(late_reads) {}

  // A queued operation has been started.
  void started(parc_op id);

  // parc_completions.
  [[nodiscard]] int take(std::span<parc_completion> to, double timeout);

  // parc_wake.
  [[nodiscard]] int wake();

  // parc_arm.
  [[nodiscard]] int arm();

private:
  [[nodiscard]] Woken rest(Limit limit, bool enough_memory);
  [[nodiscard]] bool gather();
  void count(); // under lock_
  void gather_lost();
  [[nodiscard]] std::size_t report(std::span<parc_completion> to);
  struct TakenOperation {
    parc_op id;
    Slot slot;
    Use use;
  };
  [[nodiscard]] std::optional<TakenOperation> next();
  void missed(parc_op id);

  shm::Control& control_;
  Operations& operations_;
  Waiter& waiter_;
  Guards& guards_;
  Sleep& sleep_;
  LateReads& late_reads_;

  // Taken before those of operations, and under Sleep's: nothing that can be guarded is touched under it.
  std::mutex lock_;
  using List = std::vector<parc_op, OwnMemory<parc_op>>;
  // Under lock_, not reported yet; some may have been, or be in there twice.
  List ended_; // or can be released: from first_ on, in that order
  std::size_t first_ = 0;
  List releasable_; // reads under way
  std::optional<Guards::Watching> armed_;
  // Of these lists, and whether that is there: most looks find neither, and need no lock. Release, so that
  // who sees what is told behind it sees it, too.
  std::atomic<std::size_t> listed_ = 0;
  std::atomic<bool> is_armed_ = false;
};

} // namespace parc::client
