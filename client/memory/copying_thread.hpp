// SPDX-License-Identifier: BSD-3-Clause
// The thread that serves what the kernel asks of this program's own memory (own_copies.hpp) while the others
// compute: atomic operations on windows that are not shared with it. It sleeps in the kernel's bell, takes no
// lock, calls nothing of the program's, and gets no signals. There is none before it is needed.
#pragma once

#include "client/memory/own_copies.hpp"
#include "shm/layout.hpp"
#include "system/error.hpp"

#include <atomic>
#include <mutex>
#include <pthread.h>

namespace parc::client {

class CopyingThread {
public:
  CopyingThread(shm::Bounce& bounce, OwnCopies& own_copies) : bounce_(bounce), own_copies_(own_copies) {}
  ~CopyingThread() { stop(); }
  CopyingThread(const CopyingThread&) = delete;
  CopyingThread& operator=(const CopyingThread&) = delete;

  // Once; threads: any. Errors: PARC_EAGAIN.
  [[nodiscard]] Result<void> start();
  // Nothing is asked of it any more.
  void stop();
  void forget() { runs_ = false; } // in a forked child, which has no such thread

private:
  void serve();

  shm::Bounce& bounce_;
  OwnCopies& own_copies_;
  std::mutex lock_;
  bool runs_ = false; // under lock_
  pthread_t thread_{};
  std::atomic<bool> ends_ = false;
};

} // namespace parc::client
