// SPDX-License-Identifier: BSD-3-Clause
// This process's session with the kernel of its host (a parc_context), which all its domains share, and what
// the operations are for that go through it. Whoever looks into any completion queue takes what has ended off
// libparc's queue and hands it to whom it belongs. Threads: any.
#pragma once

#include "fabric/provider.hpp"
#include "fabric/remote_parts.hpp"
#include "parc/parc.h"

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <list>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <sys/uio.h>
#include <thread>
#include <vector>

namespace parc::fabric {

class Endpoint;

using Clock = std::chrono::steady_clock;

enum class Purpose : std::uint8_t {
  send,
  receive,
  peek,             // a look at a message
  peek_and_claim,   // which is then that look's alone
  peek_and_discard, // which is thrown away
  discard,          // the second half of the latter, or of a claim
  transfer,         // to or from remote memory
  await,            // the session's own: until a message is there that was looked for in vain
};

// What a program asked an endpoint for, and what it is to be told when that has ended. There is one of each
// operation that is under way: it is kept small.
struct Request {
  Endpoint* endpoint = nullptr;
  void* context = nullptr; // the program's
  std::uint64_t flags = 0; // of its completion
  Purpose purpose = Purpose::send;
  bool reported = true;     // in a completion queue also when it succeeds
  bool anonymous = false;   // nor when it fails: nobody could tell what it was
  bool synchronous = false; // of a send, ends when it is matched
  void* buffer = nullptr;   // of a receive, its first piece
  std::uint64_t room = 0;   // bytes of a receive or a transfer
  // Of a receive that takes several messages (FI_MULTI_RECV): whose, and of how much room on it ends.
  bool several = false;
  int peer = PARC_ANY_SOURCE;
  std::uint64_t least_room = 0;
  std::shared_ptr<const parc_status> found = nullptr;  // of a message that is being discarded: as it was seen
  std::shared_ptr<const std::byte[]> copied = nullptr; // of what was injected into remote memory
  std::shared_ptr<PartsLeft> parts = nullptr;          // of one part of several
};

// As parc_initatomic has them.
struct AtomicWords {
  parc_atomic what = PARC_ADD;
  std::size_t width = 8;
  std::uint64_t operand = 0, compare = 0;
};

// How one of libparc's operations is started for it.
struct Start {
  enum class Kind : std::uint8_t { write, read, probe, read_claimed, get, put, atomic };
  Kind kind = Kind::write;
  parc_envelope envelope{};
  parc_place place{}; // of those of remote memory
  // Of a get or a put of rows: bytes of one, and from one to the next; 0: there are none.
  std::uint64_t row = 0;
  std::int64_t stride = 0;
  AtomicWords atomic{}; // of an atomic operation
  parc_op claim = PARC_OP_NULL;
  std::span<const iovec> pieces;
  unsigned flags = 0;    // besides PARC_QUEUED
  bool injected = false; // the bytes are the program's again when this is begun
};

// What was registered last, until something is begun. Threads: any.
class RegisteredLast {
public:
  void is(const void* region) { region_.store(region, std::memory_order_relaxed); }
  void forget() {
    if (region_.load(std::memory_order_relaxed) != nullptr) region_.store(nullptr, std::memory_order_relaxed);
  }
  // Whether it is that one, which it is no more.
  [[nodiscard]] bool take(const void* region) {
    return region_.load(std::memory_order_relaxed) == region &&
           region_.compare_exchange_strong(region, nullptr, std::memory_order_relaxed);
  }

private:
  std::atomic<const void*> region_ = nullptr;
};

class KernelSession {
public:
  // The one of this process, opened where it is not open; a negative FI_E* where it cannot be.
  [[nodiscard]] static int acquire(KernelSession*& session);
  void release(); // the last one closes it: what was written is delivered

  [[nodiscard]] parc_context* parc() const { return parc_; }
  RegisteredLast registered_last;
  std::atomic<bool> has_endpoint = false, has_remote_endpoint = false; // for messages, and for remote memory

  // Starts an operation for a request. Where there is no memory for it (libparc bounces what is not its own)
  // it is put off until there is; until then only what must not overtake it waits with it. Negative: it will
  // not be started, and somebody has been told why.
  ssize_t begin(const Request& request, const Start& start);

  // Takes what has ended off libparc's queue, after at most `timeout` seconds of waiting for something.
  // Returns how many operations, or a negative FI_E*: the kernel has gone and nothing is left.
  int progress(double timeout);

  // The same of a look (FI_PEEK): who looks again and again for a message that is not there waits for it.
  ssize_t look(const Request& request, const Start& start);

  // The same for somebody who looks again and again: when it has found nothing for a while, with nothing else
  // to do in between, it sleeps for a moment.
  int poll();

  // Until done() (called with no lock held) or the time has come; progresses meanwhile. False: it has come.
  template <class Done> bool wait(const Done& done, std::optional<Clock::time_point> end) {
    const Waiter here(waiters_);
    for (;;) {
      const std::uint64_t seen = wakes_.load(); // before the look: whatever is done after it is another wake
      if (done()) return true;
      if (end && Clock::now() >= *end) return false;
      if (wait_once(seen, end) < 0) return done();
    }
  }
  void wake(); // those who wait look again: something was done for them

  // Of the operations that an endpoint has under way: a receive; or whatever waits for somebody else.
  [[nodiscard]] bool cancel(const Endpoint& endpoint, const void* context);
  void cancel_all(const Endpoint& endpoint);

  // Of operations that have ended with this error the sentence of the last one; of none the error's own.
  [[nodiscard]] std::string why(int parc_error);

private:
  struct Slot { // of an operation, at parc_op_index
    parc_op operation = PARC_OP_NULL;
    bool given_up = false;
    Request request;
  };
  // Slots in runs, which are made when they are first needed. Under lock_.
  class Slots {
  public:
    [[nodiscard]] Slot& of(parc_op operation);
    // Until use(slot) is true; only those that have an operation.
    template <class Use> void each(const Use& use);

  private:
    static constexpr std::size_t run_slots = 256;
    std::vector<std::unique_ptr<Slot[]>> runs_;
  };

  // What could not be started yet.
  struct Waiting {
    Request request;
    Start start;
    std::vector<iovec> pieces;     // of start
    std::vector<std::byte> copied; // of what was injected
  };

  [[nodiscard]] static bool may_wait(const Start& start);
  [[nodiscard]] parc_op try_start(const Start& start) const;
  [[nodiscard]] bool must_wait(const Start& start) const;
  void put_off(const Request& request, const Start& start);
  void count_waiting();
  void start_waiting();
  void give_up_waiting();
  void note_failure(std::span<const parc_completion> completions);
  template <class Wanted> [[nodiscard]] std::optional<Request> take_waiting(const Wanted& wanted);
  void note(parc_op operation, const Request& request);
  void ended(const parc_completion& completion);
  void hand_on(const Request& request, const parc_completion& completion);
  int wait_once(std::uint64_t seen, std::optional<Clock::time_point> end);
  int sleep_until(Clock::time_point end);

  // Whoever has something done for another thread looks whether there is one of these, after that; and those
  // look for it after they are one.
  struct Waiter {
    explicit Waiter(std::atomic<unsigned>& in) : waiters(in) { ++waiters; }
    Waiter(const Waiter&) = delete;
    Waiter& operator=(const Waiter&) = delete;
    ~Waiter() { --waiters; }
    std::atomic<unsigned>& waiters;
  };

  parc_context* parc_ = nullptr;
  unsigned users_ = 0;

  // What looks have found nothing of since something was found, as they are asked for again and again.
  std::mutex looks_lock_;
  std::optional<Start> looked_for_; // under looks_lock_
  unsigned polls_since_ = 0;        // under looks_lock_

  std::mutex failure_lock_;
  struct {
    int error = PARC_OK;
    std::string sentence;
  } failure_; // under failure_lock_; the last of those that were noted

  std::mutex lock_;
  Slots slots_;
  // Operations that ended, in another thread, before what they were for was noted. Their places may have gone
  // to others meanwhile.
  std::vector<parc_completion> early_;
  // Operations that libparc has reported to another thread, which is still on its way here, while their
  // places went to others.
  std::vector<Slot> displaced_;

  std::mutex waiting_lock_;         // held while what waits is started: nothing overtakes it
  std::list<Waiting> waiting_ones_; // under waiting_lock_, in the program's order
  Clock::time_point moved_;         // under waiting_lock_: when one of them was started, or the first came
  std::atomic<std::size_t> put_off_ = 0; // of these

  std::atomic<unsigned> at_once_ = 0;    // operations that were over when they began
  std::atomic<std::uint64_t> found_ = 0; // operations that have ended, but looks in vain
  std::atomic<unsigned> waiters_ = 0;
  std::atomic<std::uint64_t> wakes_ = 0; // changed under waiting_
  std::mutex waiting_;
  std::condition_variable woken_;
  std::thread::id leader_; // under waiting_: one of those who wait progresses, the others sleep
};

} // namespace parc::fabric
