// SPDX-License-Identifier: BSD-3-Clause
#include "client/operation/control_calls.hpp"

#include "parc/parc.h"

namespace parc::client {

int ControlCalls::run(shm::Request request, std::int32_t* answer) {
  return run(
      request, [this](const shm::Request& asked) { return ring_.push(asked); }, answer);
}

int ControlCalls::run_last(shm::Request request) {
  return run(
      request, [this](const shm::Request& asked) { return ring_.push_last(asked); }, nullptr);
}

template <class Push> int ControlCalls::run(shm::Request request, const Push& push, std::int32_t* answer) {
  const std::lock_guard hold(lock_);
  auto& slot = control_.operations[shm::control_slot];
  ++generation_;
  request.id = shm::id_of(generation_, shm::control_slot);
  slot.error.store(PARC_OK, std::memory_order_relaxed);
  slot.state.store(shm::state_word(generation_, shm::Phase::pending), std::memory_order_relaxed);
  if (!push(request)) return PARC_EKERNEL;
  const auto done = shm::state_word(generation_, shm::Phase::done);
  if (sleep_.until([&] { return slot.state.load(std::memory_order_acquire) == done; }) != Woken::done)
    return PARC_EKERNEL;
  if (answer) *answer = slot.source.load(std::memory_order_relaxed);
  return slot.error.load(std::memory_order_relaxed);
}

} // namespace parc::client
