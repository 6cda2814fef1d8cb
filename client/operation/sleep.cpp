// SPDX-License-Identifier: BSD-3-Clause
#include "client/operation/sleep.hpp"

#include "shm/doorbell.hpp"
#include "system/coarse_clock.hpp"

#include <cerrno>
#include <sched.h>
#include <sys/eventfd.h>
#include <utility>

namespace parc::client {
namespace {

constexpr auto slow_yield =
    std::chrono::microseconds(400); // somebody computes on this core: slices are longer

} // namespace

thread_local bool Sleep::resting_ = false;

void Sleep::tell_kernel() {
  const auto head = header_.request_head.load(std::memory_order_relaxed);
  if (head == header_.request_tail.load(std::memory_order_relaxed)) return;
  if (!shm::must_ring(header_.kernel_asleep)) return;
  const int saved = errno; // parc_test may be called in a signal handler
  pipes_.ring();
  errno = saved;
}

bool Sleep::kernel_went() {
  constexpr std::uint32_t between_looks_ms = 10;
  if (pipes_.gone()) return true;
  const std::uint32_t now = coarse_ms();
  if (now - last_look_.load(std::memory_order_relaxed) < between_looks_ms) return false;
  last_look_.store(now, std::memory_order_relaxed);
  return pipes_.look();
}

void Sleep::offer_core_now_and_then() {
  if (offers_.fetch_add(1, std::memory_order_relaxed) % looks_a_yield == 0) sched_yield();
}

bool Sleep::may_spin() {
  if (quiet_waits_.load(std::memory_order_relaxed) <= 0) return true;
  quiet_waits_.fetch_sub(1, std::memory_order_relaxed);
  return false;
}

// Offers the core to others; false when somebody took it for long.
bool Sleep::yield(Clock::time_point& now) {
  sched_yield();
  const auto before = std::exchange(now, Clock::now());
  if (now - before <= slow_yield) return true;
  const int quiet = next_quiet_.load(std::memory_order_relaxed);
  quiet_waits_.store(quiet, std::memory_order_relaxed);
  next_quiet_.store(std::min(2 * quiet, most_quiet), std::memory_order_relaxed);
  return false;
}

void Sleep::polled_well() {
  next_quiet_.store(first_quiet, std::memory_order_relaxed);
}

void Sleep::sleep(std::unique_lock<std::mutex>& hold, std::uint64_t seen, Limit limit, Cancel cancel) {
  if (led_) return follow(limit, cancel);
  led_ = true;
  const int own_bell = own_bell_ ? own_bell_.get() : -1;
  hold.unlock();
  try {
    lead(seen, own_bell, limit, cancel);
  } catch (...) { // cancelled
    hold.lock();
    end_lead();
    (void)end_wait(Woken::late);
    throw;
  }
  hold.lock();
  end_lead();
  if (following_ != 0 && (completions() != seen || pipes_.gone() || woken())) followers_.notify_all();
}

// Under lock_.
void Sleep::end_lead() {
  led_ = false;
  if (armed_.exchange(false)) descriptor_.ring();
}

Result<void> Sleep::make_wakeable() {
  const std::lock_guard hold(lock_);
  if (own_bell_) return success();
  own_bell_.reset(eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC));
  if (!own_bell_) return system_error("cannot make a descriptor to be woken by");
  return success();
}

void Sleep::wake() {
  woken_.store(true, std::memory_order_release);
  const std::lock_guard hold(lock_);
  if (led_ && own_bell_) (void)eventfd_write(own_bell_.get(), 1);
  followers_.notify_all();
}

Result<int> Sleep::descriptor() {
  const std::lock_guard hold(lock_);
  return descriptor_.open(pipes_.kernels());
}

// A leader's bells are the leader's, who rings for the program then.
void Sleep::arm() {
  const std::lock_guard hold(lock_);
  descriptor_.silence();
  if (!led_) pipes_.drain();
  armed_ = true;
  shm::announce_sleep(header_.program_asleep);
  if (local_) (void)local_->announce_sleep(); // what there is already is looked for next
}

// Under lock_. Through pthread: std::condition_variable's wait may be noexcept, and a cancelled thread
// unwinds.
void Sleep::follow(Limit limit, Cancel cancel) {
  struct Counted {
    explicit Counted(Sleep& in) : sleep(in) { ++sleep.following_; }
    Counted(const Counted&) = delete;
    Counted& operator=(const Counted&) = delete;
    ~Counted() {
      --sleep.following_;
      if (cancelled) (void)sleep.end_wait(Woken::late);
    }
    Sleep& sleep;
    bool cancelled = true;
  } counted(*this);
  const InLibrary::Cancellable here(cancel == Cancel::yes);
  if (limit) {
    const timespec end = to_timespec(limit->time_since_epoch());
    pthread_cond_clockwait(followers_.native_handle(), lock_.native_handle(), CLOCK_MONOTONIC, &end);
  } else {
    pthread_cond_wait(followers_.native_handle(), lock_.native_handle());
  }
  counted.cancelled = false;
}

void Sleep::lead(std::uint64_t seen, int own_bell, Limit limit, Cancel cancel) {
  struct Asleep {
    explicit Asleep(Sleep& of) : sleep(of) {
      shm::announce_sleep(sleep.header_.program_asleep);
      alone = sleep.local_ == nullptr || sleep.local_->announce_sleep();
    }
    Asleep(const Asleep&) = delete;
    Asleep& operator=(const Asleep&) = delete;
    ~Asleep() {
      shm::announce_awake(sleep.header_.program_asleep);
      if (sleep.local_) sleep.local_->announce_awake();
    }
    Sleep& sleep;
    bool alone = true;
  };
  const Asleep announced(*this);
  const InLibrary::Cancellable here(cancel == Cancel::yes);
  if (announced.alone && completions() == seen) pipes_.sleep(backlog_.within(limit), own_bell);
}

// Under lock_.
Woken Sleep::end_wait(Woken why) {
  // One will do as the next leader; but what this thread has brought itself may be anybody's.
  if (!led_ && following_ != 0) local_ ? followers_.notify_all() : followers_.notify_one();
  return why;
}

} // namespace parc::client
