// SPDX-License-Identifier: BSD-3-Clause
// What the program asks the kernel about itself and waits for: attach a segment, detach one, let me go. The
// answers come in the control slot, which a full table of writes does not take away.
// Threads: any; one call at a time, the others wait for their turn.
#pragma once

#include "client/operation/sleep.hpp"
#include "client/session/kernel_calls.hpp"
#include "client/session/ring.hpp"
#include "system/error.hpp"

#include <mutex>

namespace parc::client {

class ControlCalls final : public KernelCalls {
public:
  ControlCalls(shm::Control& control, Ring& ring, Sleep& sleep)
      : control_(control), ring_(ring), sleep_(sleep) {}

  using KernelCalls::run;
  [[nodiscard]] int run(shm::Request request, std::int32_t* answer) override;
  // The same with the last request of all: Ring::push_last.
  [[nodiscard]] int run_last(shm::Request request);

private:
  template <class Push> [[nodiscard]] int run(shm::Request request, const Push& push, std::int32_t* answer);

  shm::Control& control_;
  Ring& ring_;
  Sleep& sleep_;
  std::mutex lock_;
  std::uint64_t generation_ = 0; // under lock_
};

} // namespace parc::client
