// SPDX-License-Identifier: BSD-3-Clause
// The program's end of the request ring. Many threads, one producer: a process-local lock makes one of many.
//
//   requests[tail]     plain stores, before the tail that covers them
//   request_tail       ours alone; stored with release, so that the kernel's acquire sees the request whole
//   request_head       the kernel's; acquire, so that our next store to that slot comes after its copy
//   kernel_asleep      the kernel's; asked after the tail, with the fence of shm/doorbell.hpp between them
//
// Invariants: tail - head never exceeds request_slots; nothing follows what push_last has pushed.
#pragma once

#include "client/session/pipes.hpp"
#include "shm/doorbell.hpp"
#include "shm/layout.hpp"

#include <mutex>

namespace parc::client {

class Ring {
public:
  Ring(shm::Control& control, Pipes& pipes) : control_(control), pipes_(pipes) {}

  // Hands a request to the kernel; what it refers to must be written. `least` is the sleep that it may not
  // let be: a read has nothing to move while no message waits, and whatever brings one wakes the kernel,
  // which takes requests first. Whoever waits rings for what it has not taken (Sleep). Waits while the ring
  // is full. False: the kernel has gone, or the ring is closed.
  [[nodiscard]] bool push(const shm::Request& request, shm::Sleep least = shm::Sleep::deep);
  // The same, and closes the ring behind it, in one step.
  [[nodiscard]] bool push_last(const shm::Request& request);
  // The kernel keeps no message for a read to come, and has taken all that was asked of it: to look there
  // would be in vain. It counts a message before it stores (release) the end of whatever came after that: who
  // has learned of a later message finds this one counted.
  [[nodiscard]] bool nothing_unread() const {
    const auto& header = control_.header;
    return header.request_head.load(std::memory_order_acquire) ==
               header.request_tail.load(std::memory_order_relaxed) &&
           header.kernel_unread.load(std::memory_order_relaxed) == 0;
  }
  // Closed, or the kernel has gone: nothing can be asked for.
  [[nodiscard]] bool dead() const { return closed() || pipes_.gone(); }
  [[nodiscard]] bool closed() const { return closed_.load(std::memory_order_acquire); }

  // This thread is in push(): a signal handler that interrupted it must not push.
  [[nodiscard]] static bool pushing() { return pushing_; }

private:
  [[nodiscard]] bool push_in_turn(const shm::Request& request, shm::Sleep least, bool last);
  [[nodiscard]] bool wait_for_room(std::uint64_t tail);

  __attribute__((tls_model("initial-exec"))) static thread_local bool pushing_;

  shm::Control& control_;
  Pipes& pipes_;
  std::mutex lock_;
  std::atomic<bool> closed_ = false; // set under lock_
};

} // namespace parc::client
