// SPDX-License-Identifier: BSD-3-Clause
// Where a thread of the program rests while the kernel works: first it polls, for a short while and only on a
// core that nobody else wants, then it sleeps. One sleeping thread, the leader, sleeps on the kernel's pipe,
// so that a bell and the kernel's death wake it alike; the others, the followers, sleep in this process.
//
// Why no wake-up is lost. The kernel finishes an operation in this order: its state (release), +1 to
// `completions` (release), the fence, `program_asleep`. Every sleeper reads `completions` (acquire) under
// lock_ before it looks at its operation, so whatever finishes after that look moves the count past what it
// has read:
//   leader    says that it sleeps, fence, compares the count with what it read: sees it moved, or is rung
//             (shm/doorbell.hpp). It then wakes all followers, under lock_.
//   follower  goes to sleep in one step with giving up lock_. While there is a leader, that leader has yet to
//             take lock_ after any later completion, and wakes it. When there is none, it is the leader.
// A leader that leaves for any other reason (its limit, a signal handler has run, its thread is cancelled)
// wakes one follower, and so does everybody who leaves while nobody leads: a successor is always up.
//   wake()    sets a flag, and then, under lock_, rings the leader's own bell and wakes all followers:
//             whoever has not seen the flag under lock_ sleeps by then, and looks again.
//   neighbours: what this program ends itself counts as a completion does, and the kernel is asked to ring
//             for it where somebody else of it may sleep (ended_here). A leader says that it sleeps to
//             them, too, and looks once more.
//   program   that polls by itself says that it sleeps (arm), then looks at its operations, then polls. A
//             leader that leaves has taken back that somebody sleeps, and perhaps the bell: it makes the
//             program's descriptor readable.
#pragma once

#include "client/base/in_library.hpp"
#include "client/base/relax.hpp"
#include "client/operation/backlog.hpp"
#include "client/session/descriptor.hpp"
#include "client/session/pipes.hpp"
#include "shm/layout.hpp"
#include "system/core.hpp"

#include <algorithm>
#include <condition_variable>
#include <mutex>
#include <optional>
#include <sched.h>
#include <sys/single_threaded.h>

namespace parc::client {

enum class Woken { done, gone, late };

// Whether pthread_cancel ends a sleep: by unwinding, which must leave everything as it was.
enum class Cancel : bool { no, yes };

// What the threads of this program bring about themselves, and whoever rests looks at besides what the kernel
// stores.
class LocalProgress {
public:
  virtual ~LocalProgress() = default;
  virtual bool progress() = 0; // true: a part of something has come, and the rest is under way
  virtual void look() = 0;     // the same, by who may look again and again
  virtual void spread() = 0;   // a thread has polled for a while: not where a neighbour does so, if it can
  // A thread waits, and progresses: what comes need not be brought by others. False: that is no news.
  [[nodiscard]] virtual bool attend() = 0;
  virtual void attend_no_more() = 0;
  // From here on whoever brings something has the kernel ring. False: there is something already.
  [[nodiscard]] virtual bool announce_sleep() = 0;
  virtual void announce_awake() = 0;
  // What this thread has ended by itself may be what another sleeps for.
  virtual void tell_others() = 0;
  // This thread is in the middle of that, and cannot begin it again: a signal handler, or a page fault's,
  // runs.
  [[nodiscard]] virtual bool inside() const = 0;
  // Nothing is to be done for this operation any more: its memory may go. False: somebody is about to.
  [[nodiscard]] virtual bool forget(std::int64_t operation) = 0;
  // Of a read that no message is known for yet: from here on its message finds it without memory, and its
  // `block` is the caller's, if the kernel does not say otherwise (`with`: RequestKind::unplace; nobody: it
  // is not to be asked). Null: its message is there, or who brings it.
  struct Unplaced {
    void* block = nullptr;
    shm::With with = shm::With::nobody;
  };
  [[nodiscard]] virtual Unplaced unplace(std::int64_t operation) = 0;
  // The kernel says otherwise: the block is the read's again, if that is the kernel's or a neighbour's now.
  [[nodiscard]] virtual bool place_again(std::int64_t operation, void* block) = 0;
  // An operation of memory that the kernel has named as the program does, or of which fragments have come, is
  // over: no thread still copies it. settle_copies() waits for that, which no signal handler may.
  [[nodiscard]] virtual bool settled() = 0;
  virtual void settle_copies() = 0;
};

class Sleep {
public:
  // How long a thread polls before it sleeps: longer than two processes and their kernels take to wake each
  // other, or none of them would ever be found awake.
  static constexpr Clock::duration default_spin = std::chrono::microseconds(200);
  // Waits that do not poll after polling met somebody who computes on this core: it may cost a whole slice of
  // the scheduler's. Doubled each time that it meets somebody again.
  static constexpr int first_quiet = 64, most_quiet = 8192;
  static constexpr std::uint32_t looks_told = 8;
  static constexpr int looks_a_yield = 50;
  static constexpr int most_spins = 50; // while something comes: the kernel's end is seen behind that

  Sleep(shm::ControlHeader& header, Pipes& pipes, Clock::duration spin = default_spin)
      : header_(header), pipes_(pipes), spin_time_(spin), backlog_(header.backlog) {}

  // Rests until done() is true, the kernel has gone, or the limit has passed. done() is a look at what the
  // kernel stores in the control segment; it is called often, also under lock_, and must be short. No system
  // call when it is true at once. Not in a signal handler that interrupted it.
  template <class Done>
  [[nodiscard]] Woken until(const Done& done, Limit limit = {}, Cancel cancel = Cancel::no) {
    if (done()) return Woken::done;
    progress();
    if (done()) return Woken::done;
    header_.waits.waits.fetch_add(1,
                                  std::memory_order_relaxed); // not where polling was enough: each would pay
    const Attending waits(local_);
    const RestsHere here_now(header_);
    tell_kernel();
    if (spin(done, limit)) return Woken::done;
    const Resting here(*this);
    for (;;) {
      const auto seen = completions(); // before the looks: see above
      // Without the lock: it may bring about what others wait for. To sleep between parts of a message takes
      // longer than they do.
      if (progresses() && spin(done, limit)) return Woken::done;
      std::unique_lock hold(lock_);
      if (done()) return end_wait(Woken::done);
      if (pipes_.gone()) return end_wait(Woken::gone);
      if (limit && Clock::now() >= *limit) return end_wait(Woken::late);
      sleep(hold, seen, limit, cancel);
    }
  }

  void set_local(LocalProgress* local) { local_ = local; }
  [[nodiscard]] Backlog& backlog() { return backlog_; }
  void progress() { (void)progresses(); }
  // The same in a call that does not wait.
  void look() {
    if (local_) local_->look();
    backlog_.look();
  }
  // This program has ended an operation itself, and stored that before. True: others of its threads, or its
  // own poll, may sleep for it, and the kernel is to ring.
  [[nodiscard]] bool ended_here() {
    // The only thread there is does not sleep now, and looks before it does.
    if (__libc_single_threaded && !armed_.load(std::memory_order_relaxed)) return false;
    ended_here_.fetch_add(1, std::memory_order_seq_cst);
    return resting_threads_.load(std::memory_order_seq_cst) > (resting_ ? 1 : 0) ||
           armed_.load(std::memory_order_seq_cst);
  }
  void tell_others() {
    if (local_) local_->tell_others();
  }
  [[nodiscard]] bool forget_local(std::int64_t operation) { return !local_ || local_->forget(operation); }
  [[nodiscard]] LocalProgress::Unplaced unplace_local(std::int64_t operation) {
    return local_ ? local_->unplace(operation) : LocalProgress::Unplaced{};
  }
  [[nodiscard]] bool place_again_local(std::int64_t operation, void* block) {
    return local_ && local_->place_again(operation, block);
  }
  [[nodiscard]] bool settled() const { return !local_ || local_->settled(); }
  void settle_copies() const {
    if (local_) local_->settle_copies();
  }

  // The same without an end but the kernel's, also in a signal handler that interrupted until().
  template <class Done> void anywhere(const Done& done) {
    if (!resting_ && !(local_ && local_->inside())) {
      (void)until(done);
      return;
    }
    tell_kernel();
    while (!done() && !pipes_.gone()) pipes_.pause();
  }

  // Rings for requests that were pushed without a bell, where the kernel has not taken them.
  void tell_kernel();

  // For the program's own poll: readable when something has ended since arm(), or sooner.
  [[nodiscard]] Result<int> descriptor();
  void arm();

  // For sleeps that another thread of this program ends by wake(), one each: their done() asks woken(), and
  // who leaves for it takes the wake. An error: no descriptors are left.
  [[nodiscard]] Result<void> make_wakeable();
  void wake();
  [[nodiscard]] bool woken() const { return woken_.load(std::memory_order_acquire); }
  [[nodiscard]] bool take_wake() { return woken() && woken_.exchange(false, std::memory_order_acquire); }

  void close_in_child() {
    descriptor_.close();
    own_bell_.reset();
  }

  // A look that does not wait has found nothing. The kernel, which polls as long as it sees such looks, reads
  // that line all the time: it is written now and then.
  void looked_in_vain() {
    tell_kernel();
    const std::uint32_t looks = looks_.load(std::memory_order_relaxed) + 1; // one that is lost is no matter
    looks_.store(looks, std::memory_order_relaxed);
    if (looks % looks_told == 0) header_.program_looks.store(looks, std::memory_order_relaxed);
  }

  // Of a program that may do nothing else than look: others need its core, too.
  void offer_core_now_and_then();
  // Looks now and then: a program that only tests, or looks, must learn of the kernel's end, too.
  [[nodiscard]] bool kernel_went();

  // Polls for what a neighbour stores. In vain: the wait that follows sleeps at once.
  template <class Done> [[nodiscard]] bool poll_neighbour(const Done& done) {
    if (done()) return true;
    tell_kernel();
    if (!may_spin()) return false;
    auto now = Clock::now();
    const auto end = now + spin_time_;
    while (now < end) {
      for (int looks = 0; looks < looks_a_yield; ++looks) {
        relax();
        if (done()) return true;
      }
      const bool core_is_free = yield(now);
      if (local_) local_->spread();
      if (done()) {
        if (core_is_free) polled_well();
        return true;
      }
      if (!core_is_free) return false;
    }
    quiet_waits_.fetch_add(1, std::memory_order_relaxed);
    return false;
  }

  // Polls, and never sleeps: for what is about to be done.
  template <class Done> [[nodiscard]] bool poll(const Done& done, Clock::duration time) {
    return done() || spin(done, Clock::now() + time);
  }

  // The same whoever else wants the core: they have it between looks.
  template <class Done> [[nodiscard]] bool poll_sharing(const Done& done, Clock::duration time) {
    if (done()) return true;
    bool under_way = false;
    for (const auto end = Clock::now() + time; Clock::now() < end; sched_yield())
      if (local_ ? look_again(done, under_way) : done()) return true;
    return done();
  }

private:
  bool progresses() {
    const bool under_way = local_ && local_->progress();
    backlog_.look();
    return under_way;
  }
  template <class Done> bool spin(const Done& done, Limit limit) {
    if (!may_spin()) return false;
    const Spinning counted(header_);
    auto now = Clock::now();
    const auto most = now + most_spins * spin_time_, last = limit ? std::min(most, *limit) : most;
    auto end = std::min(now + spin_time_, last);
    while (now < end) {
      bool under_way = false;
      if (local_ && look_again(done, under_way)) return true;
      const bool core_is_free = yield(now);
      if (local_) local_->spread();
      if (under_way) end = std::min(now + spin_time_, last);
      if (done()) {
        if (core_is_free) polled_well();
        return true;
      }
      if (!core_is_free) return false;
    }
    return false;
  }

  // A neighbour is faster than the system is with a yield.
  template <class Done> bool look_again(const Done& done, bool& under_way) {
    for (int looks = 0; looks < looks_a_yield; ++looks) {
      under_way |= local_->progress();
      if (done()) return true;
      relax();
    }
    return false;
  }

  struct Attending {
    explicit Attending(LocalProgress* to) : local(to != nullptr && to->attend() ? to : nullptr) {}
    Attending(const Attending&) = delete;
    Attending& operator=(const Attending&) = delete;
    ~Attending() {
      if (local) local->attend_no_more();
    }
    LocalProgress* local;
  };

  struct Resting {
    explicit Resting(Sleep& in) : sleep(in) {
      resting_ = true;
      sleep.resting_threads_.fetch_add(1, std::memory_order_seq_cst);
    }
    Resting(const Resting&) = delete;
    Resting& operator=(const Resting&) = delete;
    ~Resting() {
      sleep.resting_threads_.fetch_sub(1, std::memory_order_relaxed);
      resting_ = false;
    }
    Sleep& sleep;
  };

  // A guess, where there are threads: the last one to say so is right.
  struct RestsHere {
    explicit RestsHere(shm::ControlHeader& of) : header(of) { say(true); }
    RestsHere(const RestsHere&) = delete;
    RestsHere& operator=(const RestsHere&) = delete;
    ~RestsHere() { say(false); }
    void say(bool rests) {
      header.program_core.store(shm::core_word(current_core(), rests), std::memory_order_relaxed);
    }
    shm::ControlHeader& header;
  };

  // While one of these lives the kernel sees that somebody polls, and polls too.
  class Spinning {
  public:
    explicit Spinning(shm::ControlHeader& header) : header_(header) {
      header_.program_spinning.fetch_add(1, std::memory_order_relaxed);
    }
    Spinning(const Spinning&) = delete;
    Spinning& operator=(const Spinning&) = delete;
    ~Spinning() { header_.program_spinning.fetch_sub(1, std::memory_order_relaxed); }

  private:
    shm::ControlHeader& header_;
  };

  [[nodiscard]] std::uint64_t completions() const {
    return header_.completions.load(std::memory_order_acquire) + ended_here_.load(std::memory_order_seq_cst);
  }
  bool may_spin();
  bool yield(Clock::time_point& now);
  void polled_well();
  void sleep(std::unique_lock<std::mutex>& hold, std::uint64_t seen, Limit limit, Cancel cancel);
  void follow(Limit limit, Cancel cancel);
  void lead(std::uint64_t seen, int own_bell, Limit limit, Cancel cancel);
  void end_lead();
  Woken end_wait(Woken why);

  // Its place is there from the thread's start: a handler may be the first to ask.
  __attribute__((tls_model("initial-exec"))) static thread_local bool resting_;

  shm::ControlHeader& header_;
  Pipes& pipes_;
  const Clock::duration spin_time_;
  Backlog backlog_;
  std::atomic<int> quiet_waits_ = 0;          // that go to sleep at once
  std::atomic<int> next_quiet_ = first_quiet; // so many, the next time that the core is found busy
  std::mutex lock_;
  std::condition_variable followers_; // sleep here
  unsigned following_ = 0;            // under lock_
  bool led_ = false;                  // under lock_: somebody sleeps on the pipe
  std::atomic<bool> armed_ = false;   // changes under lock_: the program may
  Descriptor descriptor_;             // under lock_
  std::atomic<std::uint32_t> looks_ = 0;
  std::atomic<unsigned> offers_ = 0;         // of the core, asked for
  std::atomic<std::uint32_t> last_look_ = 0; // for the kernel's end; coarse_ms()
  std::atomic<bool> woken_ = false;          // and nobody has left for it yet
  LocalProgress* local_ = nullptr;
  std::atomic<int> resting_threads_ = 0;
  std::atomic<std::uint64_t> ended_here_ = 0; // counts like the kernel's completions
  Fd own_bell_;                               // under lock_, as far as it is made; an eventfd
};

} // namespace parc::client
