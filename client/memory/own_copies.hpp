// SPDX-License-Identifier: BSD-3-Clause
// The program's end of shm::Bounce: copies of its own memory, and operations on words of it, that the kernel
// asks for, as it does not reach that. Only here is it known what there is of it: a page that is closed is
// opened by whatever handler the program has for that, and where there is none the program dies as it would
// of a memcpy. A word is of a window: as for gets and puts, where it cannot be reached it is not there.
//
// Why no memory is touched that is the program's again. The kernel takes back what it has asked for before it
// says that the operation is over, or handed over. Who learns of that makes a fence and looks whether a copy
// is under way (settle); who copies says so, makes a fence and looks whether the copy is still wanted. One of
// them sees the other. The same holds of the kernel's end.
//
// Threads: any, one copies at a time. Async-signal-safe.
#pragma once

#include "client/session/pipes.hpp"
#include "shm/layout.hpp"

#include <atomic>

namespace parc::client {

class OwnCopies {
public:
  OwnCopies(shm::Control& control, Pipes& pipes) : control_(control), pipes_(pipes) {}

  // Copies what is asked for, if no thread is at it: that one looks again when it is through. Not under a
  // lock: the program's handler may run.
  void serve() {
    while (is_asked() && copy()) continue;
  }

  // A thread is at it, maybe for an operation that has ended since.
  [[nodiscard]] bool under_way() const {
    std::atomic_thread_fence(std::memory_order_seq_cst);
    return under_way_.load(std::memory_order_acquire);
  }
  // None is, but where a signal handler has interrupted this thread in the middle of one.
  [[nodiscard]] bool is_settled() const { return inside_ || !under_way(); }
  // Waits until none is for what has ended; not where this thread itself is, which a signal handler has
  // interrupted.
  void settle() const;

private:
  [[nodiscard]] bool is_asked() const {
    return shm::number_asked(control_.bounce.asked.load(std::memory_order_acquire)) !=
           control_.bounce.answered.load(std::memory_order_relaxed);
  }
  [[nodiscard]] bool copy();     // false: another thread is at it, or the kernel has gone
  void operate(std::byte* word); // or says that no such word is there

  __attribute__((tls_model("initial-exec"))) static thread_local bool inside_;

  shm::Control& control_;
  Pipes& pipes_;
  std::atomic<bool> under_way_ = false;
};

} // namespace parc::client
