// SPDX-License-Identifier: BSD-3-Clause
// Messages from neighbours, and the reads that they may answer. Whoever is in a call drains: it takes what
// has been published in the queues of this program's senders, in their order, gives each message to the
// oldest read that fits, or stores a copy for a read to come. What is posted, stored and drained changes
// under one lock: else a message could be stored behind a read that looked for it before
// (tests/model/neighbours.hpp).
//
// A read that names a sender with a queue is this program's business alone. One of any source, or of a row
// that has sent nothing yet, is so until the kernel says that it must know (OfKernel::must_know), and shared
// from then on: the kernel has it, too, and who changes its owner word first has it.
// A message whose bytes are the kernel's business (a rendezvous) is matched here, and then asked of the
// kernel by its name.
//
// Threads: any. drain() is async-signal-safe: where its thread was interrupted under the lock it does
// nothing.
#pragma once

#include "client/local/areas.hpp"
#include "client/local/stored_message.hpp"
#include "client/operation/operations.hpp"
#include "client/session/ring.hpp"
#include "protocol/posted_reads.hpp"

#include <csignal>
#include <mutex>

namespace parc::client {

// Somebody who sends to this program, or whom a read has named.
struct Neighbour {
  bool made = false; // else it is as its memory came
  int row = 0;
  const shm::Letterbox* from = nullptr; // none: it has not sent anything here
  std::uint32_t queue = 0;              // of its letterbox
  std::int32_t cell = -1;               // of that, which comes next; below 0: the first
  std::uint32_t place = 0;              // among our senders
  std::uint32_t looks = 0;              // of its letterbox, as they were when this program last asked
  std::uint64_t head = 0;               // messages that are drained
  std::uint64_t told = 0;               // of these, what it knows of
  bool stopped = false;                 // nothing more of it can be stored: it waits at its sender
  std::uint32_t departed = 0;           // a protocol::Departure; nothing more comes of it
  std::uint32_t leaves_as = 0;          // the same, while something of it is still to be drained
  std::uint64_t stored_bytes = 0;       // of memory
  bool starved = false;                 // it was stopped as this process has no memory
  protocol::hook::List<StoredMessage, protocol::hook::Queue> stored; // oldest first
};

class Inbox {
public:
  Inbox(shm::Letterbox& own, Areas& areas, shm::NeighbourCounters& counters, Operations& operations,
        Ring& ring, Sleep& sleep, int rank);
  Inbox(const Inbox&) = delete;
  Inbox& operator=(const Inbox&) = delete;
  ~Inbox();

  // A read or probe that has begun (Operations::begin), as it would go to the kernel; it may have ended when
  // this returns. `background`: its thread does not wait for it here, so others may bring it on. False: the
  // kernel was to have it, too, and has gone.
  [[nodiscard]] bool post(const shm::Request& request, bool background);
  // The next message of a neighbour straight from its cell, where nothing was posted or stored before that
  // might have a say in it. `not_yet`: it has sent nothing more. `never`: post a read.
  enum class AtOnce : std::uint8_t { taken, not_yet, never };
  [[nodiscard]] AtOnce take_at_once(const parc_envelope& wanted, const iovec& buffer, parc_status& status);
  // Nor has the kernel a message for this probe. False: one of them may have.
  [[nodiscard]] bool finds_nothing(const shm::Request& request);
  // It has a sender that this row, or any, may be.
  [[nodiscard]] bool hears(int row);
  // A read of the message that a probe has claimed. False: it is none of a neighbour.
  [[nodiscard]] bool has_claimed(std::uint64_t probe);
  void post_claimed(const shm::Request& request, std::uint64_t probe);
  // False: it is the kernel's to cancel.
  [[nodiscard]] bool cancel(parc_op id);
  // The kernel hears of all reads and probes that it may answer from here on, of those that are posted first:
  // one that it alone may answer is behind them.
  void share_reads();
  // The program leaves: nothing is posted any more, what is ends, and the kernel is told what nobody has
  // read.
  void close();
  // The kernel has let the program go: what neighbours had taken and not asked for ends, too.
  void end_taken();

  // The senders of long messages may interrupt this thread from here on, if reads are posted that go on in
  // the background. Async-signal-safe.
  static constexpr int interrupt_signal = SIGURG;
  void arm();
  void disarm() {
    if (own_.all.armed.load(std::memory_order_relaxed) != 0)
      own_.all.armed.store(0, std::memory_order_relaxed);
  }
  void interrupted();

  // As LocalProgress says.
  void spread();
  // The same. True: fragments have come, and more may.
  bool drain();
  void look();
  [[nodiscard]] bool attend();
  void attend_no_more() { own_.owner.attending.fetch_sub(1, std::memory_order_relaxed); }
  [[nodiscard]] bool announce_sleep();
  void announce_awake();
  void tell_others() {
    if (sleep_.ended_here()) ring(rank_);
  }
  [[nodiscard]] static bool inside() { return inside_; }
  // No thread is in the middle of a fragment for what is over (take_fragment looks under the lock).
  void settle() { const Hold hold(*this); }
  [[nodiscard]] bool settled() { // the same in a signal handler, which may have interrupted it
    return !inside_ && Hold(*this, std::try_to_lock);
  }
  [[nodiscard]] bool forget(std::int64_t operation);
  [[nodiscard]] LocalProgress::Unplaced unplace(parc_op id);
  [[nodiscard]] bool place_again(parc_op id, void* block);

  [[nodiscard]] std::mutex& lock() { return lock_; }

private:
  struct Read : protocol::Wanted<Neighbour>, protocol::hook::Hook<protocol::hook::Owned> {
    std::uint64_t operation = 0;
    std::uint64_t address = 0, length = 0; // as in its request, with what follows
    std::uint64_t arrived = 0;             // of a message that comes in fragments
    std::int32_t peer = PARC_ANY_SOURCE;
    std::uint16_t pieces = 0;
    MessageFlags flags = MessageFlags::none;
    shm::RequestKind kind = shm::RequestKind::none;
    bool shared = false;
    bool kept = false;      // to be shared when the kernel must know
    bool given_up = false;  // by the kernel
    bool published = false; // for neighbours to take, or it need not be
    bool background = false;
    [[nodiscard]] bool posted() const { return protocol::hook::Hook<protocol::hook::Owned>::is_linked(); }
    [[nodiscard]] bool probes() const { return kind == shm::RequestKind::probe; }
    [[nodiscard]] parc_op id() const { return static_cast<parc_op>(operation); }
    [[nodiscard]] std::uint64_t generation() const { return shm::generation_of(operation); }
    void take(const shm::Request& request);
    [[nodiscard]] shm::Request request() const;
  };
  // lock_, and that this thread has it.
  class Hold {
  public:
    explicit Hold(Inbox& inbox) : lock_(inbox.lock_) { inside_ = true; }
    Hold(Inbox& inbox, std::try_to_lock_t how) : lock_(inbox.lock_, how) {
      inside_ = inside_ || lock_.owns_lock();
    }
    Hold(const Hold&) = delete;
    Hold& operator=(const Hold&) = delete;
    ~Hold() {
      if (lock_) inside_ = false;
    }
    explicit operator bool() const { return lock_.owns_lock(); }

  private:
    std::unique_lock<std::mutex> lock_;
  };
  // Its place is there from the thread's start: a handler may be the first to ask.
  __attribute__((tls_model("initial-exec"))) static thread_local bool inside_;

  // All of these with lock_ held.
  void drain_locked();
  void share_locked();
  [[nodiscard]] bool push(const Read& read);
  [[nodiscard]] bool has_new_senders() const {
    return own_.kernel.senders.load(std::memory_order_acquire) != accepted_;
  }
  void hear_new_senders();
  void accept_senders();
  void drain(Neighbour& from);
  [[nodiscard]] static const shm::Cell* published(Neighbour& from);
  void go_on(Neighbour& from, const shm::Cell& cell);
  [[nodiscard]] bool may_take_at_once(const Neighbour& from) const;
  void tell_drained(Neighbour& from);
  void ring(int row);
  [[nodiscard]] bool take(Neighbour& from, const shm::Cell& cell, const std::byte* body);
  void take_fragment(Neighbour& from, const shm::Cell& cell, const std::byte* body);
  void withdraw(const Read& read);
  [[nodiscard]] bool kernel_must_know() const {
    return own_.kernel.must_know.load(std::memory_order_seq_cst) != 0;
  }
  // Behind a change of its owner word: the kernel looks at that when it has said that it must know.
  [[nodiscard]] bool may_be_in_kernel(const Read& read) const {
    return read.shared || (read.kept && kernel_must_know());
  }
  [[nodiscard]] static bool may_store(const Neighbour& from);
  [[nodiscard]] StoredMessage* store(Neighbour& from, const shm::Cell& cell, const std::byte* body);
  void answer_probes(StoredMessage& message);
  void give(Read& read, StoredMessage& message);
  void give(const shm::Request& request, Neighbour& from, const shm::Cell& cell, const std::byte* body);
  void answer(const Read& read, StoredMessage& message);
  void forget(StoredMessage& message);
  [[nodiscard]] StoredMessage* find(const Read& read);
  [[nodiscard]] StoredMessage* find_offered(const Read& read);
  [[nodiscard]] static bool is_offered(const Neighbour& from, const shm::Cell& cell, bool take);
  [[nodiscard]] static bool is_offered(StoredMessage& message, bool take);
  [[nodiscard]] bool is_free(const Read& read);
  [[nodiscard]] bool take_read(Read& read, bool withdraws = true);
  void unpost(Read& read);
  void publish(Read& read);
  [[nodiscard]] bool may_be_taken(const Read& read) const;
  [[nodiscard]] bool is_pending(const Read& read) const; // the kernel has not begun it either
  [[nodiscard]] bool anything_published() const;
  void note_call();
  [[nodiscard]] int better_core(int here);
  void note_core(int core);
  void note_look() { // one that is lost is no matter
    auto& looks = own_.owner.looks;
    looks.store(looks.load(std::memory_order_relaxed) + 1, std::memory_order_relaxed);
  }
  [[nodiscard]] bool is_open(std::uint64_t id);
  [[nodiscard]] bool look_at_departures();
  [[nodiscard]] std::optional<std::uint32_t> hopeless(Read& read, bool all_drained);
  void keep_stored(Neighbour& from);
  void set_aside(Read& read);
  void fail(const Read& read, std::uint32_t departure);
  void fail_shared();
  void starve(Neighbour& from);
  [[nodiscard]] bool starves(const Read& read) const;
  void end(parc_op id, const Operations::End& how);
  [[nodiscard]] Neighbour& neighbour(int row);
  void tell_threads();
  void tell_unread(const Neighbour& from, const shm::Cell& cell);
  [[nodiscard]] std::atomic<std::uint64_t>& owner_word(const Read& read) {
    return owner_word(slot_of(read.id()));
  }
  [[nodiscard]] std::atomic<std::uint64_t>& owner_word(Slot slot) {
    return slot < shm::read_slots ? own_.all.owners[slot] : operations_.tables().owner(slot);
  }
  [[nodiscard]] Read& read_at(Slot slot);
  [[nodiscard]] Read* posted_read(parc_op id); // none: no read that is posted has it

  shm::Letterbox& own_;
  Areas& areas_;
  shm::NeighbourCounters& counters_;
  Operations& operations_;
  Ring& ring_;
  Sleep& sleep_;
  const int rank_;
  // Its place is there from the thread's start: a handler arms, too.
  __attribute__((tls_model("initial-exec"))) static thread_local std::uint64_t interrupt_word_;

  std::mutex lock_;
  Neighbour* const neighbours_;                           // by row; made when they are first needed
  std::array<Neighbour*, shm::max_neighbours> senders_{}; // with a queue that may bring something
  std::uint32_t sending_ = 0, accepted_ = 0;
  bool unheard_ = false; // the next one to accept has a letterbox that cannot be attached
  // By index_of their slots, in runs that are made when they are first needed.
  static constexpr std::uint32_t run_reads = 256;
  std::vector<Read*, OwnMemory<Read*>> reads_{shm::most_reads / run_reads};
  protocol::PostedReads<Read> posted_;
  protocol::hook::List<Read, protocol::hook::Queue> probes_;
  protocol::hook::List<Read, protocol::hook::Owned> all_; // posted reads and probes
  protocol::UnexpectedMessages<StoredMessage> arrivals_;  // oldest first
  protocol::hook::List<StoredMessage, protocol::hook::Arrivals> claimed_;
  StoredMessages memory_;
  std::uint64_t posts_ = 0;
  std::uint32_t taken_at_once_ = 0;
  // Long polls; questions in a row that found their core shared; and when one of them last went to another.
  std::uint32_t polls_ = 0, shared_ = 0, moved_ms_ = 0;
  std::uint64_t fragments_ = 0; // that were taken
  std::size_t unpublished_ = 0; // reads that are posted; while there are any nothing behind them is published
  std::uint32_t changes_ = 0;   // of the letterbox, looked at
  bool closed_ = false;
  // The kernel must know; or it could not find what is posted, as nothing is published. Stored under lock_.
  std::atomic<bool> shares_;
  std::size_t background_ = 0; // reads of that kind that are posted
  bool left_to_look_ = false;  // at departures, as something could not be drained
  bool ended_some_ = false;    // others of this program may wait for it
};

} // namespace parc::client
