// SPDX-License-Identifier: BSD-3-Clause
// Early release (erMPI 2005, sections 2.2 to 2.5). A released wait for a read returns at once and leaves the
// pages whose bytes have not arrived without access; one for a write leaves those that are not acknowledged
// read-only. The kernel is another process, so its mapping is the paper's alias: protection here never stops
// it. A touch faults; the handler (fault.hpp) waits for that page, opens everything that has arrived, and
// returns; a store to a write's page waits as long as a copy takes, and then copies (hand_over.hpp). Every
// call of libparc opens what has arrived, too.
//
// Its files. Which pages a guard needs is a pure table's to say: guard_table.hpp; which of them a trace
// keeps closed until they are touched is another's: page_trace.hpp. guarded_pages.cpp gives pages what they
// say; guards.cpp makes guards and looks how far their operations are; guard_waits.cpp waits for what is
// missing, in calls and in the fault's handler; loss.cpp reports messages that will never be whole.
//
// Invariants. "Decide and mprotect" is one step under lock_, taken with all signals but SIGSEGV blocked and
// held over nothing that touches the program's memory; waiting happens outside of it, and everything is
// looked at again afterwards. What the handler touches lies in OwnMemory. A page is opened only when every
// byte that belongs on it has arrived: nobody sees stale bytes. An operation's slot is spent only after its
// guards are gone. Threads: any; resolve() is async-signal-safe for the faults it is made for.
//
// At PARC_RELEASE_ENVELOPE the edges of a buffer, which share pages with other memory, arrive before the wait
// is released (protocol::Grant): only whole pages of the buffer are guarded. Releases that bring nothing are
// left out, by buffer and call site, and where all of them do they stop (benefit.hpp), but for PARC_EARLY.
//
// Memory order. The kernel stores an operation's bytes, then its counters (front, back), the word of what
// came between them (error, as long as it is not over: shm/between.hpp) or its state with release; whoever
// opens a page has loaded them with acquire, and mprotect makes the page's bytes the ones that are there:
// nothing else orders a program's loads from it. `total` is valid once the state says so. All else is under
// lock_, but for count_ and the statistics: they are relaxed, because who could miss a guard by that has not
// heard of its release either, and faults on its pages into the handler, which locks.
#pragma once

#include "client/base/signal_mask.hpp"
#include "client/early/benefit.hpp"
#include "client/early/cost.hpp"
#include "client/early/exposed_memory.hpp"
#include "client/early/fault.hpp"
#include "client/early/get_times.hpp"
#include "client/early/guard_table.hpp"
#include "client/early/mappings.hpp"
#include "client/early/page_trace.hpp"
#include "client/early/strips.hpp"
#include "client/operation/hand_over.hpp"
#include "system/coarse_clock.hpp"

#include <csignal>

namespace parc::client {

enum class Level : int {
  off = PARC_RELEASE_OFF,
  envelope = PARC_RELEASE_ENVELOPE,
  full = PARC_RELEASE_FULL,
  gets = PARC_RELEASE_GETS
};

// The level that PARC_EARLY_RELEASE asks for; off where it is not set, and where libparc-early.so is not
// loaded: a program that is released without having asked for it uses its buffers in system calls, too.
[[nodiscard]] Result<Level> level_from_environment();

// Bytes of the shortest read that is released early: for a shorter one no memory is adopted.
inline constexpr std::uint64_t least_released = 4096;

class Guards {
public:
  Guards(shm::Control& control, Operations& operations, const Arena& arena, HandOver& hand_over, Ring& ring,
         Sleep& sleep, Pipes& pipes, Trace& trace, int rank);

  void set_level(Level level);
  // The level at which a wait for this read may be released now. With several threads `envelope` at most: a
  // released thread may fault while it holds a lock that another needs in order to send.
  [[nodiscard]] Level level_for(const Operations::Entry& entry) const;

  // Whether an operation's buffer can be guarded: at least a page, or of a get with PARC_EARLY, in few
  // pieces, of memory that the kernel has mapped.
  [[nodiscard]] bool can_guard(Slot slot) const;
  // Of this program: reads into it are not released.
  [[nodiscard]] ExposedMemory& exposed() { return exposed_; }
  [[nodiscard]] Strips& strips() { return strips_; }
  // Whether releasing a read into this buffer, which this thread starts, would pay, by what is known. Not
  // asked where the read has PARC_EARLY.
  [[nodiscard]] bool should_pay(const void* buffer) {
    return page_trace_.on() || (budget_.allows(coarse_ms) && benefit_.expected({buffer, Trace::site()}));
  }
  // Pages are traced as where waits are released, and none is.
  [[nodiscard]] bool only_traces() const { return page_trace_.on() && trace_.unreleased(); }
  // Whether releases pause now, as they did not pay; nobody need prepare for one.
  [[nodiscard]] bool pauses() const { return !page_trace_.on() && budget_.pauses(coarse_ms); }
  // Charges to the budget: what it has cost to prepare a read for its release; and, as one in vain, a read
  // that has ended unreleased. (How long a get took is noted, too, and a trace's pages are closed.)
  void spend(std::chrono::nanoseconds cost) { budget_.spend(cost); }
  void ended_unreleased(Slot slot);
  // Whether a read's envelope has arrived (a get has none), and all bytes that share pages with other memory;
  // or it is over.
  [[nodiscard]] bool edges_arrived(parc_op id, Slot slot) const;
  // Releases the wait for a read that the caller has taken, whose slot is spent with its guards. False: it
  // must be waited for (it is done, bounced, shorter than a page, or there is no room for its guards).
  [[nodiscard]] bool release_read(parc_op id, Slot slot, parc_status& status);
  // Releases the wait for a write whose hand-over is prepared. False also where copying costs less.
  [[nodiscard]] bool release_write(parc_op id, Slot slot, parc_status& status);

  // Whether faults can be caught in this process.
  [[nodiscard]] bool possible() const { return possible_; }
  // Whether a level is set, so that buffers are to be made such that operations of this kind can be released.
  [[nodiscard]] bool wanted(shm::RequestKind kind) const {
    const Level level = level_.load(std::memory_order_relaxed);
    return possible_ && level != Level::off && (level != Level::gets || kind == shm::RequestKind::get);
  }
  [[nodiscard]] bool releases_at_once() const {
    return level_.load(std::memory_order_relaxed) == Level::full;
  }
  [[nodiscard]] static bool any() { return count_.load(std::memory_order_relaxed) != 0; }
  // How many operations of the process have guards: it has one context at a time, whose guards go before it.
  [[nodiscard]] static const std::atomic<std::size_t>& guarded() { return count_; }
  void open_arrived() {
    if (any()) look();
  }
  // What the caller is going to do with memory. Stores wait for writes from it as well.
  enum class Use : std::uint8_t { loads, stores };
  // Blocks until nothing is missing of [memory, memory + bytes); of the pages that it lies on; of anything.
  void settle(const void* memory, std::size_t bytes, Use use);
  void settle_pages(const void* memory, std::size_t bytes);
  void settle_all();
  // Blocks until every released read has begun, and every released get has ended: who hears of it may change
  // what it gets. Next: the reads alone, as a get tells nobody of anything.
  void settle_begun();
  void settle_begun_reads();
  // The gets alone: a read that is matched tells its writer that all before it is over.
  void settle_gets();
  // From hold_back to hold_back_no_more no wait is released, so that nothing is guarded once all has been
  // settled.
  void hold_back() {
    const Locked hold(lock_);
    ++held_back_;
  }
  void hold_back_no_more() {
    const Locked hold(lock_);
    --held_back_;
  }

  // Opens what a trace keeps closed.
  void let_untouched_go() { open_for_call({0, UINTPTR_MAX}, ForCall::nothing); }

  // Runs `exchange`, which takes a stretch of pages away and brings other memory there, while nobody's guard
  // changes; a touch of them meanwhile waits. It must not touch anything that is guarded.
  template <class Exchange> bool exchange_pages(const Exchange& exchange) {
    catch_faults(*this);
    const Locked hold(lock_);
    ++changes_;
    open_untouched({0, UINTPTR_MAX});
    return exchange();
  }

  // Handles a page fault at this address, of that instruction. True: execute it again; false: it is none of
  // ours.
  [[nodiscard]] bool resolve(const void* address, std::uintptr_t instruction);

  void on_lost(parc_lost_handler* handler, void* argument);
  [[nodiscard]] parc_release_counts counts() const;

  // Lets writes overtake the reads that this program was released from (RequestKind::release): for the test
  // that shows the loop which the gate prevents.
  void remove_gate() { gate_ = false; }

  // While one of these lives the kernel counts what begins and what progresses as completions.
  class Watching {
  public:
    explicit Watching(shm::ControlHeader& header) : watching_(header.program_watching) {
      watching_.fetch_add(1, std::memory_order_relaxed);
      std::atomic_thread_fence(std::memory_order_seq_cst); // before the look at how far things are
    }
    Watching(const Watching&) = delete;
    Watching& operator=(const Watching&) = delete;
    ~Watching() { watching_.fetch_sub(1, std::memory_order_relaxed); }

  private:
    std::atomic<std::uint32_t>& watching_;
  };
  [[nodiscard]] Watching watch() { return Watching(control_.header); }

private:
  struct Missing { // bytes of an operation that somebody waits for
    parc_op id;
    Stretch bytes;
    bool writes = false;
    bool gets = false;
    Stretch touched{};    // of that, what somebody needs
    bool islands = false; // which is opened where it comes between what is missing before and behind it, too
    std::uint64_t length = 0;
    int peer = 0;
    std::uint64_t train =
        0; // when the last of its peer's gets was started that is waited for with it; 0: alone
  };
  [[nodiscard]] static Missing missing_from(const Guard& guard, const Stretch& bytes) {
    return {.id = guard.id,
            .bytes = bytes,
            .writes = guard.writes,
            .gets = guard.gets,
            .touched = bytes,
            .islands = !guard.writes && !guard.refused,
            .length = guard.length,
            .peer = guard.envelope.peer};
  }
  // While one of these lives no handler of the program runs on this thread: it might touch a guarded page,
  // and wait for what this thread is about to do.
  class WithoutHandlers : SignalMask {
  public:
    WithoutHandlers() : SignalMask(SIG_SETMASK, all_but_faults()) {}

  private:
    static sigset_t all_but_faults() {
      sigset_t all;
      sigfillset(&all);
      sigdelset(&all, SIGSEGV);
      return all;
    }
  };
  class Locked {
  public:
    explicit Locked(std::mutex& lock) : hold_(lock) {}

  private:
    WithoutHandlers alone_;
    std::lock_guard<std::mutex> hold_;
  };

  [[nodiscard]] bool is_long_enough(const Operations::Entry& entry) const;
  [[nodiscard]] Guard make_guard(parc_op id, Slot slot) const;
  [[nodiscard]] std::chrono::nanoseconds cost_of_guarding(std::uint64_t bytes);
  [[nodiscard]] std::chrono::nanoseconds known_cost(std::uint64_t bytes) const;
  void note_get(Slot slot);
  void trace_pages(Slot slot);
  [[nodiscard]] bool add(const Guard& guard, parc_status& status);
  void look();
  void drop(Guard& guard);
  void note_benefit(const Guard& guard);
  void report_losses();
  void report(const Guard& guard, int error);
  [[nodiscard]] int loss_of(const Guard& guard) const;

  // What is missing, and waiting for it.
  [[nodiscard]] Stretch missing_of(const Guard& guard) const;
  [[nodiscard]] std::uint64_t bytes_missing_of(const Guard& guard) const;
  template <class Wanted> [[nodiscard]] std::optional<Missing> find_missing(const Wanted& wanted) const;
  template <class Wanted> void settle_what(const Wanted& wanted);
  template <class Of> void settle_begun_of(const Of& of);
  [[nodiscard]] std::optional<Missing> touched(const Pages& page, bool writes) const;
  void await(const Missing& missing);
  [[nodiscard]] std::uint64_t end_of_strip(const Guard& first) const;
  void await_train(int peer, std::uint64_t last);
  void note_wait(const Missing& missing, Clock::time_point since);
  void let_go(parc_op write);
  enum class ForCall : std::uint8_t { nothing, use, overwrite };
  void open_for_call(const Pages& pages, ForCall what);
  // What is waited for has come: all of it, by the counters; what was touched, by the word.
  [[nodiscard]] bool counted(const Missing& missing) const;
  [[nodiscard]] bool came_between(const Missing& missing) const;
  [[nodiscard]] bool is_done(parc_op id) const;
  [[nodiscard]] bool has_begun(parc_op id) const;
  [[nodiscard]] const shm::Operation& shared(parc_op id) const;
  void trace_wait(trace::Kind kind, std::uint64_t begin, const Missing& missing, std::uintptr_t address,
                  std::uint64_t site);

  // Pages, under lock_: guarded_pages.cpp.
  [[nodiscard]] bool guard_pages(const Guard& guard);
  [[nodiscard]] bool shrink(Guard& guard, const Stretch& missing);
  void open_islands(Guard& guard);
  void open_all(Guard& guard);
  [[nodiscard]] bool protect(const Adopted& adopted, const GuardTable::Run& run);
  [[nodiscard]] bool protect_all(const Adopted& adopted, const Pages& pages);
  [[noreturn]] static void give_up();
  void open_again(const Adopted& adopted, const Pages& pages);
  void close_untouched(const Guard& guard);
  void open_untouched(const Pages& pages);
  void overwrite_untouched(const Pages& pages);
  void use_untouched(const Pages& pages);
  [[nodiscard]] bool touch_untouched(const PageTrace::Touch& touch);
  void count();
  [[nodiscard]] static bool is_protected(const Guard& guard);
  [[nodiscard]] bool holds_signal_stack(const Guard& guard) const;
  [[nodiscard]] bool holds_this_stack(const Guard& guard) const;

  // This thread is in a handler of parc_on_lost.
  __attribute__((tls_model("initial-exec"))) static thread_local bool reporting_here;

  shm::Control& control_;
  Operations& operations_;
  const Arena& arena_;
  HandOver& hand_over_;
  Ring& ring_;
  Sleep& sleep_;
  Pipes& pipes_;
  Trace& trace_;
  const int rank_;
  const bool possible_; // faults can be caught here
  std::atomic<Level> level_ = Level::off;
  std::uint64_t segments_device_ = 0; // Mapping::device of System V segments
  bool gate_ = true;
  std::once_flag cost_measured_;
  GuardCost cost_{};
  Benefit benefit_;
  GetTimes get_times_;
  Strips strips_;
  Budget budget_;
  ExposedMemory exposed_;

  std::mutex lock_;
  GuardTable guards_;                     // under lock_
  PageTrace page_trace_;                  // under lock_
  static std::atomic<std::size_t> count_; // of guards_; and one, where page_trace_ has pages
  Mappings mappings_;                     // under lock_
  std::uint64_t changes_ = 0;             // under lock_: pages opened or exchanged so far
  unsigned held_back_ = 0;                // under lock_
  parc_lost_handler* handler_ = nullptr;  // under lock_
  void* handler_argument_ = nullptr;      // under lock_
};

} // namespace parc::client
