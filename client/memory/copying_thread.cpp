// SPDX-License-Identifier: BSD-3-Clause
#include "client/memory/copying_thread.hpp"

#include "parc/parc.h"
#include "shm/bounce_bell.hpp"

#include <csignal>
#include <cstring>

namespace parc::client {

Result<void> CopyingThread::start() {
  const std::lock_guard hold(lock_);
  if (runs_) return success();
  sigset_t all, before;
  sigfillset(&all);
  // Of pages that are closed for the moment it waits in their handler, as any thread.
  for (const int fault : {SIGSEGV, SIGBUS}) sigdelset(&all, fault);
  pthread_sigmask(SIG_SETMASK, &all, &before);
  ends_.store(false);
  const int code = pthread_create(
      &thread_, nullptr,
      [](void* self) -> void* {
        static_cast<CopyingThread*>(self)->serve();
        return nullptr;
      },
      this);
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
  if (code != 0) return error(PARC_EAGAIN, "cannot make a thread: {}", std::strerror(code));
  runs_ = true;
  return success();
}

void CopyingThread::serve() {
  bounce_.sleepers.store(1, std::memory_order_seq_cst);
  while (!ends_.load()) {
    const std::uint32_t seen = bounce_.bell.load(std::memory_order_seq_cst);
    own_copies_.serve();
    if (!ends_.load()) shm::sleep(bounce_, seen);
  }
  bounce_.sleepers.store(0, std::memory_order_seq_cst);
}

void CopyingThread::stop() {
  const std::lock_guard hold(lock_);
  if (!runs_) return;
  ends_.store(true);
  shm::wake(bounce_);
  pthread_join(thread_, nullptr);
  runs_ = false;
}

} // namespace parc::client
