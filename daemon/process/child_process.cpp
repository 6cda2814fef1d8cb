// SPDX-License-Identifier: BSD-3-Clause
#include "daemon/process/child_process.hpp"

#include "system/scheduling.hpp"
#include "system/thread.hpp"

#include <atomic>
#include <cerrno>
#include <condition_variable>
#include <deque>
#include <memory>
#include <mutex>
#include <system_error>
#include <unistd.h>

namespace parc::daemon {
namespace {

class Start {
public:
  explicit Start(std::function<void(const Ready& ready)> child) : child_(std::move(child)) {}

  // In a thread that waits for exec.
  void make() {
    const pid_t made = vfork();
    if (made == 0) {
      child_([this] { say(getpid()); }); // the memory is the kernel's until exec
      _exit(EXIT_FAILURE);
    }
    say(made > 0 ? made : -errno); // there is none, or it has a copy of the memory
    child_ = nullptr;
  }

  // Its number, or a negative errno.
  pid_t await() {
    outcome_.wait(unknown, std::memory_order_acquire);
    return outcome_.load(std::memory_order_acquire);
  }

private:
  static constexpr pid_t unknown = 0;

  // Twice the same, where the process does share its memory. Release and acquire: whatever the process has
  // done before it is ready has happened for who waits.
  void say(pid_t outcome) {
    outcome_.store(outcome, std::memory_order_release);
    outcome_.notify_one();
  }

  std::function<void(const Ready& ready)> child_;
  std::atomic<pid_t> outcome_{unknown};
};

class Threads {
public:
  void make(std::shared_ptr<Start> start) {
    const std::lock_guard hold(lock_);
    if (idle_ <= starts_.size()) start_thread([this] { serve(); });
    starts_.push_back(std::move(start));
    wanted_.notify_one();
  }

private:
  // As quick on a busy core as the loop that waits for it; what it makes is not (scheduling.hpp).
  void serve() {
    (void)SchedulingClass::acquire(RealtimePolicy::Off);
    std::unique_lock hold(lock_);
    for (;;) {
      ++idle_;
      wanted_.wait(hold, [this] { return !starts_.empty(); });
      --idle_;
      const std::shared_ptr<Start> start = std::move(starts_.front());
      starts_.pop_front();
      hold.unlock();
      start->make();
      hold.lock();
    }
  }

  std::mutex lock_;
  std::condition_variable wanted_;
  std::deque<std::shared_ptr<Start>> starts_;
  std::size_t idle_ = 0;
};

// Never destroyed: its threads run until the process ends.
Threads& threads() {
  static auto* const all = new Threads;
  return *all;
}

} // namespace

Result<pid_t> make_process(std::function<void(const Ready& ready)> child) {
  const auto start = std::make_shared<Start>(std::move(child));
  pid_t made = 0;
  try {
    threads().make(start);
    made = start->await();
  } catch (const std::system_error& no_thread) {
    made = -no_thread.code().value();
  }
  if (made > 0) return made;
  errno = -made;
  return system_error("cannot make a process");
}

} // namespace parc::daemon
