// SPDX-License-Identifier: BSD-3-Clause
// The program's view of the operation table: which slots are in use, what each operation of the program is
// about, and how one ends. The shared half of a slot (shm::Operation) says how far the kernel is; the private
// half (Entry) says who of the program owns it. Slot numbers are indices of both.
//
// An entry's life, in one atomic word with its generation, so that no step is taken for a stale id:
//
//   free -> live   started; the program holds the id and must not touch the buffer
//        -> loose  the same for a write whose bytes all lie in the arena: it can be let go at any moment
//   live -> held -> live      for a moment: a thread gives it memory or takes it back (late_reads.hpp)
//   live, loose -> taken      one thread or signal handler finishes it: everything else is that one's alone
//   taken -> spent            finished and reported
//           -> detached       a write that was let go, or what was released early: the kernel is still
//                             at work on it. What is guarded is spent by its guard (early/guards.hpp).
//   spent -> free, detached -> free (when the kernel is done)   under lock_, which frees its memory
//
// spent_ and detached_ are lock-free stacks, because a signal handler (parc_test) may spend; only the holder
// of lock_ empties them, whole.
//
// Threads: any. All but begin, abandon, collect and is_held are async-signal-safe.
#pragma once

#include "client/memory/arena.hpp"
#include "client/memory/copy_room.hpp"
#include "client/operation/operation_table.hpp"
#include "client/operation/sleep.hpp"
#include "client/trace/trace.hpp"
#include "parc/parc.h"

#include <array>
#include <optional>
#include <span>
#include <vector>

namespace parc::client {

// What a program asked for, and the memory of the arena that goes with it.
struct Message {
  parc_envelope envelope{};
  std::uint64_t length = 0; // of the message (write) or of the buffer (read)
  std::span<const iovec> pieces{};
  MessageFlags flags = MessageFlags::none;
  protocol::Space space = protocol::Space::programs;
  std::uint64_t place = 0;  // as in the request: the bytes' address, or that of the list
  std::uint16_t listed = 0; // as in the request: pieces in the list, 0 for none
  void* block = nullptr;    // arena: where the kernel finds or puts the bytes instead of in pieces
  void* list = nullptr;     // arena: the pieces, as the kernel reads them
  std::uint64_t held = 0;   // reserved in the copy room
  bool loose = false;
  bool releases = false; // of a read: its wait is to be released early, by the level that is set
  bool pays = true;      // of a read: to release it so, by what is known
  bool blocking = false; // its thread waits for it at once
  bool local = false;    // neighbours' messages answer it, too
  bool late = false;     // a read without memory
  bool straight = false; // of a read: neighbours' bytes may come to its pieces before it is waited for
  Order order = Order::any;
  Adopted adopted{}; // memory that some of the pieces lie in

  [[nodiscard]] bool is(MessageFlags any_of) const { return has(flags, any_of); }
};

class Operations {
public:
  using Entry = client::Entry;

  Operations(OperationTable& table, Arena& arena, AdoptedMemory& adopted, CopyRoom& room, Trace& trace,
             int ranks);

  // Takes a slot for the message and prepares both halves; the request is still to be sent. Owns the
  // message's arena memory, its uses of adopted memory and its copy room from here on, also when it fails: as
  // OperationTable::grow. Waits for the kernel where the table must grow, never for an operation.
  [[nodiscard]] Result<parc_op> begin(shm::RequestKind kind, const Message& message);

  // The request could not be sent: as if it had never begun.
  void abandon(parc_op id);

  // How an operation ended that the kernel does not end: as it would.
  struct End {
    int error = PARC_OK;
    int source = PARC_ANY_SOURCE;
    std::uint64_t tag = 0;
    std::uint64_t data = 0;
    MessageFlags flags = MessageFlags::none; // the message's
    std::uint64_t total = 0;
    std::uint32_t departure = 0;
    bool late = false; // of a write: its start may have returned
  };
  void end(parc_op id, const End& how);
  [[nodiscard]] static parc_status status_after(const End& how); // as its wait would say
  // What is known of its message, which the kernel brings.
  void set_message(Slot slot, const End& message);

  // A wait for it would not rest: it is done, loose or no operation of ours.
  [[nodiscard]] bool finished(parc_op id) const;

  // Of an operation that the program holds: as it asked for.
  [[nodiscard]] int peer_of(parc_op id) const { return table_[slot_of(id)].envelope.peer; }

  // Somebody has taken it and is not through with it.
  [[nodiscard]] bool being_finished(parc_op id) const;

  // Its envelope is there, or it is over.
  [[nodiscard]] bool begun(parc_op id) const;

  // The program holds its id, and nobody finishes it.
  [[nodiscard]] bool is_live(parc_op id) const;

  // Its id, of a slot whose operation is live, but not loose.
  [[nodiscard]] std::optional<parc_op> live(Slot slot) const;

  // Of a slot with a queued operation that the program has not been told the end of: its id.
  [[nodiscard]] std::optional<parc_op> queued(Slot slot) const;

  // Makes the caller the one who finishes it; none when it is no live operation (being finished by another,
  // spent, never started).
  [[nodiscard]] std::optional<Slot> take(parc_op id, Use* before = nullptr);

  // The opposite of take(): nothing has become of it.
  void put_back(Slot slot) { set_use(slot, Use::live); }

  // For a moment nobody else has a live operation, which take() waits for. False: it is not live.
  [[nodiscard]] bool hold(parc_op id);
  void let_go(Slot slot);
  [[nodiscard]] bool is_held_now(parc_op id) const; // or was when take() failed

  // Reads without memory.
  [[nodiscard]] bool any_late() const { return late_.load(std::memory_order_relaxed) != 0; }
  [[nodiscard]] bool is_late(Slot slot) const { return table_[slot].late.load(std::memory_order_relaxed); }
  [[nodiscard]] bool wants_memory(Slot slot) const; // its message is there, too
  // Bytes of the arena that its message has; 0 where the program has been told that it is over.
  [[nodiscard]] std::uint64_t memory_of(Slot slot) const;
  void set_late(Slot slot, bool late); // of a slot that the caller holds or has taken
  void set_given_up(Slot slot) { table_[slot].given_up = true; } // the same

  // Of taken slots:
  [[nodiscard]] bool done(Slot slot) const; // the kernel has finished
  [[nodiscard]] Entry& entry(Slot slot) { return table_[slot]; }
  [[nodiscard]] parc_op id_in(Slot slot) const {
    return static_cast<parc_op>(
        shm::id_of(generation_in(table_[slot].tag.load(std::memory_order_relaxed)), slot));
  }
  [[nodiscard]] shm::Operation& shared(Slot slot) { return tables().operation(slot); }
  int finish(Slot slot, parc_status& status);          // done: copies out, spends, returns its result
  int detach(Slot slot, parc_status& status);          // a write that needs the program's memory no more
  int lost(Slot slot, int error, parc_status& status); // the kernel will not answer
  // A read whose wait was released: its slot is in use until it is spent. What is known of it goes to status.
  void set_released(Slot slot);
  void spend_released(Slot slot);
  // The same for a write, whether the kernel is done with it or not.
  void let_go_released(Slot slot) { detached_.push(table_, slot); }
  void describe(Slot slot, parc_status& status);

  // What the sentence about an operation that failed says besides its status.
  struct Failed {
    std::uint32_t departure = 0; // of its peer, as in shm::Operation
    std::uint64_t room = 0;      // of the program's memory
    shm::RequestKind kind = shm::RequestKind::none;
    std::uint64_t offset = 0; // of a get, in its window
  };
  // Of the last operation that this thread found to have failed.
  [[nodiscard]] static const Failed& last_failed() { return failed_; }

  // Puts and atomics (parc/window.h), whether the program holds their ids or not: how many were started, and
  // those that are not in place.
  [[nodiscard]] std::uint64_t puts_started() const { return puts_started_.load(std::memory_order_acquire); }
  struct PutUnderWay {
    Slot slot = 0;
    std::uint64_t state = 0;
  };
  template <class To> [[nodiscard]] std::vector<PutUnderWay> puts_under_way(const To& to) const {
    std::vector<PutUnderWay> puts;
    each_slot([&](Slot slot) {
      const shm::Operation& shared = tables().operation(slot);
      const std::uint64_t state = shared.state.load(std::memory_order_acquire);
      if (shm::phase_of(state) != shm::Phase::pending) return;
      const auto what = static_cast<shm::OneSided>(shared.departure_or_data.load(std::memory_order_relaxed));
      if ((what == shm::OneSided::put || what == shm::OneSided::atomic) &&
          to(shared.source.load(std::memory_order_relaxed)))
        puts.push_back({slot, state});
    });
    return puts;
  }
  // Leaves those that still are.
  [[nodiscard]] bool are_over(std::vector<PutUnderWay>& puts) const;
  // One that has failed after its wait had returned, of which nobody has been told.
  struct LostPut {
    parc_envelope envelope{}; // of its place: the peer, the window as tag, the offset as data
    std::uint64_t length = 0;
    int error = PARC_OK;
    std::uint32_t departure = 0;
  };
  [[nodiscard]] std::optional<LostPut> take_lost_put();

  // The program has not been told how it ended.
  [[nodiscard]] bool is_held(parc_op id) const;

  // A rank, or a peer that was added or has written to this program.
  [[nodiscard]] bool knows(int peer) const { return peer < peers_.load(std::memory_order_relaxed); }

  // False: the last write to this rank that we know of failed, so no write to it is let go unseen.
  [[nodiscard]] bool peer_answers(int rank) const;

  // Frees what finished operations had, as far as it can be known without waiting.
  void collect();
  // Bytes of that write, and of copies for the same rank, ever, that have been taken: rises as long as any
  // are. Frees copies that all is taken of.
  [[nodiscard]] std::uint64_t taken_from(Slot writing);
  // Their blocks alone, where no lock is held.
  void collect_blocks();
  // A block of the arena, from what finished operations had if need be.
  [[nodiscard]] Result<void*> allocate(std::size_t bytes);

  [[nodiscard]] static bool is_write(parc_op id) { return shm::is_write(slot_of(id)); }

  [[nodiscard]] bool is_put(parc_op id) const { // of an operation that the caller holds
    return table_[slot_of(id)].kind == shm::RequestKind::put;
  }

  // Of an operation that the caller holds: its wait rests only for a while, and then copies it.
  [[nodiscard]] bool may_copy(parc_op id) const {
    return is_write(id) && !table_[slot_of(id)].is(MessageFlags::synchronous);
  }

  // use(slot) for each that may have been used.
  template <class Use> void each_slot(const Use& use) const { tables().each(use); }
  [[nodiscard]] const shm::Tables& tables() const { return table_.shared(); }

  // What has not been freed yet goes into the trace, as far as it is known.
  void trace_rest();
  // What has not ended does, and leaves this process, which may be killed while it waits.
  void trace_under_way();
  [[nodiscard]] bool traced() const { return trace_.on(); }

  // Of a live write that nobody may change the memory of any more: its wait returns at once.
  void loosen(parc_op id);

private:
  // A page fault's handler spends.
  class Stack {
  public:
    void push(const OperationTable& table, Slot slot);
    [[nodiscard]] Slot take_all() {
      if (top_.load(std::memory_order_relaxed) == none) return none;
      return top_.exchange(none, std::memory_order_acquire);
    }
    static constexpr Slot none = UINT32_MAX;

  private:
    std::atomic<Slot> top_ = none;
  };
  [[nodiscard]] Result<Slot> take_slot(bool writes);
  void give_up(const Message& message);
  void collect_locked();
  void reap(std::size_t at_most);
  void free_slot(Slot slot);
  void trace_message(Slot slot, std::uint16_t flags = 0) const;
  [[nodiscard]] int result(Slot slot, parc_status& status);
  void set_use(Slot slot, Use use);
  void note_peer(int rank, int error);
  void note_end(Slot slot);
  void take_message(const shm::Operation& shared, parc_status& status);

  // A signal handler's too: its place is there from the thread's start.
  __attribute__((tls_model("initial-exec"))) static thread_local Failed failed_;

  OperationTable& table_;
  Arena& arena_;
  AdoptedMemory& adopted_;
  CopyRoom& room_;
  Trace& trace_;
  std::atomic<std::uint32_t> late_ = 0;
  std::atomic<int> peers_; // their numbers are below
  // Of peers, by their numbers; where there are more, some share a place and one that failed counts for all.
  std::array<std::atomic<bool>, 4096> failed_peers_{};
  Stack spent_, detached_;
  std::atomic<std::uint64_t> puts_started_ = 0;

  std::mutex lock_;           // of what is free in the table, too; taken before the arena's
  std::vector<Slot> to_reap_; // detached
  std::size_t next_to_reap_ = 0;
  struct Taken { // of copies for a rank
    std::uint64_t of_gone = 0, of_copies = 0;
    Clock::time_point summed{};
  };
  static constexpr std::chrono::milliseconds sum_every{10};
  std::array<Taken, 16> taken_; // by rank; where there are more, some share a place
  [[nodiscard]] Taken& taken_of_rank(int rank) {
    return taken_[static_cast<std::size_t>(rank) % taken_.size()];
  }
  std::optional<LostPut> lost_put_;
};

} // namespace parc::client
