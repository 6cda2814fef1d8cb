// SPDX-License-Identifier: BSD-3-Clause
#include "client/memory/own_copies.hpp"

#include "protocol/atomic_operation.hpp"
#include "shm/doorbell.hpp"

#include <cerrno>
#include <cstring>
#include <sched.h>

namespace parc::client {

thread_local bool OwnCopies::inside_ = false;

bool OwnCopies::copy() {
  if (under_way_.exchange(true, std::memory_order_seq_cst)) return false;
  inside_ = true;
  std::atomic_thread_fence(std::memory_order_seq_cst);
  shm::Bounce& bounce = control_.bounce;
  const std::uint64_t asked = bounce.asked.load(std::memory_order_acquire);
  const std::uint64_t number = shm::number_asked(asked);
  const bool again = number == bounce.answered.load(std::memory_order_relaxed); // another thread was faster
  const bool gone = pipes_.gone();
  if (!again && !gone && shm::is_wanted(asked)) {
    auto* const memory =
        reinterpret_cast<void*>(static_cast<std::uintptr_t>(bounce.address.load(std::memory_order_relaxed)));
    const std::size_t length = bounce.length.load(std::memory_order_relaxed);
    switch (bounce.what.load(std::memory_order_relaxed)) {
    case shm::Bounce::What::fetch: std::memcpy(bounce.bytes, memory, length); break;
    case shm::Bounce::What::store: std::memcpy(memory, bounce.bytes, length); break;
    case shm::Bounce::What::operate: operate(static_cast<std::byte*>(memory)); break;
    }
  }
  if (!again && !gone) bounce.answered.store(number, std::memory_order_release);
  inside_ = false;
  under_way_.store(false, std::memory_order_seq_cst);
  std::atomic_thread_fence(std::memory_order_seq_cst); // before the next look: who was turned away saw that
  if (!again && !gone && shm::must_ring(control_.header.kernel_asleep)) {
    const int saved = errno;
    pipes_.ring();
    errno = saved;
  }
  return !gone;
}

void OwnCopies::operate(std::byte* word) {
  protocol::Atomic atomic;
  std::memcpy(&atomic, control_.bounce.bytes, sizeof atomic);
  const std::uint64_t before = protocol::operate(word, atomic);
  std::memcpy(control_.bounce.bytes, &before, sizeof before);
}

void OwnCopies::settle() const {
  while (!is_settled()) sched_yield();
}

} // namespace parc::client
