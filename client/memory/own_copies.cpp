// SPDX-License-Identifier: BSD-3-Clause
#include "client/memory/own_copies.hpp"

#include "protocol/atomic_operation.hpp"
#include "shm/doorbell.hpp"

#include <cerrno>
#include <cstring>
#include <linux/futex.h>
#include <sched.h>
#include <sys/syscall.h>
#include <unistd.h>

namespace parc::client {
namespace {

// Of an aligned word, without a fault where none is there: the system stores what is in half of it, by an
// operation that changes no bit.
bool is_storable(std::byte* word) {
  const int saved = errno;
  const std::uint32_t nobody = 0; // waits here
  const long done = syscall(SYS_futex, &nobody, FUTEX_WAKE_OP_PRIVATE, 0L, 0L, word,
                            FUTEX_OP(FUTEX_OP_OR, 0, FUTEX_OP_CMP_EQ, 0));
  const bool there = done >= 0 || errno != EFAULT;
  errno = saved;
  return there;
}

} // namespace

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
  shm::Bounce::Operated how{};
  if (is_storable(word)) how = {protocol::operate(word, atomic), 1};
  std::memcpy(control_.bounce.bytes, &how, sizeof how);
}

void OwnCopies::settle() const {
  while (!is_settled()) sched_yield();
}

} // namespace parc::client
