// SPDX-License-Identifier: BSD-3-Clause
// A thread beside a loop, for the calls that nothing can make return: it goes with the process.
#pragma once

#include <csignal>
#include <functional>
#include <memory>
#include <thread>

namespace parc {

// All signals are for the thread that calls. Throws std::system_error where there can be no other.
inline void start_thread(std::function<void()> work) {
  sigset_t all, before;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &before);
  const auto restore = [&before](void*) { pthread_sigmask(SIG_SETMASK, &before, nullptr); };
  const std::unique_ptr<void, decltype(restore)> at_end(&all, restore);
  std::thread(std::move(work)).detach();
}

} // namespace parc
