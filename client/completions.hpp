// SPDX-License-Identifier: BSD-3-Clause
// The completion queue: operations that nobody waits for by their ids. The kernel sets a bit for each that it
// has finished; a write whose bytes all lie in the arena is finished when it is started. Threads: any. Not
// async-signal-safe.
#pragma once

#include "client/waits.hpp"

#include <deque>

namespace parc::client {

class Completions {
public:
  Completions(shm::Control& control, Operations& operations, Waits& waits, Rest& rest)
      : control_(control), operations_(operations), waits_(waits), rest_(rest) {}

  // A queued write has been started.
  void started(parc_op id);

  // parc_completions.
  [[nodiscard]] int take(std::span<parc_completion> to, double timeout);

private:
  [[nodiscard]] bool gather();
  void gather_lost();
  [[nodiscard]] std::size_t report(std::span<parc_completion> to);

  shm::Control& control_;
  Operations& operations_;
  Waits& waits_;
  Rest& rest_;

  std::mutex lock_;           // taken before those of operations
  std::deque<parc_op> ended_; // under lock_: not reported yet; some may have been twice
};

} // namespace parc::client
