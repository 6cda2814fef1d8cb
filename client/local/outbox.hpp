// SPDX-License-Identifier: BSD-3-Clause
// Short messages to neighbours: a message is copied into the last cell of the queue for its receiver, and
// published by the cell's stamp, after which nothing can take it back. A cell is free again when the receiver
// has drained it, or has departed. Which receivers have queues is the kernel's to say, once for each.
//
// A message that has no cell waits here, behind those of its pair and no other's, and is published when that
// pair may have one (CellShares): whoever is in a call looks. Its bytes are copied, where a copy may be held,
// and its write is over; else they stay in the program's memory, and the write ends when it is published.
//
// Threads: any. flush(), forget(), and what is said of sleep are async-signal-safe.
//
//   lock_   cells, queues, and counts; not held while anything is waited for
#pragma once

#include "client/local/areas.hpp"
#include "client/local/blocks.hpp"
#include "client/local/cell_shares.hpp"
#include "client/operation/backlog.hpp"
#include "client/operation/control_calls.hpp"
#include "client/operation/operations.hpp"
#include "protocol/posted_reads.hpp"
#include "protocol/wire.hpp"

#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <sys/uio.h>
#include <vector>

namespace parc::client {

struct LocalMessage { // to a neighbour
  std::uint64_t tag = 0;
  std::uint64_t data = 0;
  MessageFlags flags = MessageFlags::none;
  protocol::Space space = protocol::Space::programs;
  shm::CellKind kind = shm::CellKind::whole;
  std::span<const iovec> pieces{}; // from `offset` on of `length` bytes
  std::uint64_t length = 0, offset = 0;
  shm::Fragment fragment{}; // where it is one
};

// A message that has no cell yet.
struct Waiting : protocol::hook::Hook<protocol::hook::Queue> {
  shm::Cell cell{};          // as it will be published
  std::byte* body = nullptr; // bytes that do not fit into it; none: they are in the write's memory
  parc_op write = 0;         // that has not ended; 0: it has
  std::uint64_t held = 0;    // in the copy room
};

class Outbox {
public:
  Outbox(shm::Letterbox& own, Areas& areas, std::mutex& areas_lock, shm::NeighbourCounters& counters,
         Operations& operations, CopyRoom& room, ControlCalls& control_calls, Ring& ring, Backlog& backlog,
         std::vector<bool> local_ranks);
  Outbox(const Outbox&) = delete;
  Outbox& operator=(const Outbox&) = delete;
  ~Outbox();

  // There is a queue for messages to this row. Asks the kernel, the first time. Errors: PARC_ENOMEM, there is
  // one, but its receiver's letterbox cannot be attached.
  [[nodiscard]] Result<bool> reaches(int row);

  [[nodiscard]] bool knows(int row);     // the same of one that was asked for before
  [[nodiscard]] bool may_reach(int row); // the same, or that is not known yet

  enum class Sent : std::uint8_t {
    published,
    held,  // it waits for a cell, and nothing is needed of the write any more
    waits, // the same, and the write ends with it (a rendezvous: with the kernel)
    departed,
    no_memory,
    closed
  };
  // The message of this write, to a row that is reached. Where it is held or waits, flush() is called next. A
  // fragment never does: `no_memory` says that there is no cell or no body for it now.
  [[nodiscard]] Sent send(int row, const LocalMessage& message, parc_op write);
  // A message that a body takes, where nothing stands against it: its receiver has a queue, and does not
  // compute over a read that it might be for, and there are a cell and a body. False: see the others.
  [[nodiscard]] bool send_at_once(int row, const LocalMessage& message);
  // The receiver has posted reads and is not waiting for them: a message that one of them fits had better
  // come while it computes.
  [[nodiscard]] bool computes(int row);
  struct Taken { // a read of the receiver's
    std::uint64_t id = 0;
    std::uint32_t entry = 0; // among those that it has published
  };
  // The same of a message that comes in fragments, where the read takes such, and all of it.
  [[nodiscard]] std::optional<Taken> take_for_fragments(int row, protocol::Space space, std::uint64_t tag,
                                                        std::uint64_t length);
  // A thread of the receiver waits in the library, or looks there whenever that count moves (none: it has
  // departed). It stays mapped.
  struct Attention {
    bool attends = false;
    const std::atomic<std::uint32_t>* looks = nullptr;
    bool patient = false; // it may well come back in a while
  };
  [[nodiscard]] Attention attention(int row);
  void note_attention(int row, bool came_back); // of who was waited for patiently
  // Takes the oldest that this message fits; none: there is none, or what was sent before might be for it.
  [[nodiscard]] std::optional<Taken> take(int row, protocol::Space space, std::uint64_t tag) {
    return take(row, space, tag, {});
  }
  // An announced write is given up, unless somebody has taken it, or it has not been announced.
  [[nodiscard]] static bool may_offer(parc_op id) { return shm::index_of(slot_of(id)) < shm::most_offers; }
  void offer(parc_op id);
  [[nodiscard]] bool withdraw(parc_op id);
  [[nodiscard]] std::uint32_t departure(int row); // of one that has departed

  // Messages wait for cells.
  [[nodiscard]] bool anything_waits() const { return waiting_pairs_.load(std::memory_order_relaxed) != 0; }
  // Publishes what may be. True: writes have ended. Does nothing where its thread is in the middle of this.
  [[nodiscard]] bool flush();
  // How much of this row's waits, in bytes of memory, and whether a message to it would not.
  [[nodiscard]] std::uint64_t backlog(int row);
  [[nodiscard]] bool has_cell(int row);
  // A message that waits is given up. True: its write has ended with that; else it is the kernel's, or the
  // message does not wait.
  [[nodiscard]] bool cancel(int row, parc_op write);
  // The wait for a write has ended without it, as the kernel has gone. False: somebody is about to end it.
  [[nodiscard]] bool forget(parc_op write);
  // From here on receivers ring when they have drained something, if messages wait for cells. The caller
  // makes the barrier between this and its next look.
  void announce_sleep();
  void announce_awake();
  [[nodiscard]] bool may_go_on(); // flush() would do something
  [[nodiscard]] static bool inside() { return inside_; }
  // The program leaves: what has been published will be read, and nothing follows.
  void close();

private:
  struct Receiver {
    int row = 0;
    std::uint32_t queue = 0;
    std::uint32_t place = 0; // among the receiver's senders
    const shm::Letterbox* to = nullptr;
    bool may_take_reads = false;
    bool left = false; // the receiver has departed, and its letterbox may be somebody else's
    std::uint64_t sent = 0, drained = 0;
    std::uint32_t impatient = 0, next_impatient = 0; // times that it is not waited for; the next time in vain
    std::uint64_t whole = 0;             // of those sent, until behind the last one that is no fragment
    std::uint32_t huge = 0;              // bodies that they have
    std::uint16_t oldest = 0, empty = 0; // cells: of the first message that is not drained, and the last one
    std::uint32_t rung = 0;              // the sleep of the receiver that was rung for last
    protocol::hook::List<Waiting, protocol::hook::Queue> waiting{}; // for cells, oldest first
    std::uint64_t backlog = 0;                                      // their memory
    bool backlogged = false;                                        // it is among those that flush() looks at
    std::uint32_t since = 0; // coarse_ms() when one of them last went, or the first of them came
    [[nodiscard]] std::uint64_t in_flight() const { return sent - drained; }
  };
  // lock_, and that this thread has it.
  class Hold {
  public:
    explicit Hold(Outbox& outbox) : lock_(outbox.lock_) { inside_ = true; }
    Hold(Outbox& outbox, std::try_to_lock_t how) : lock_(outbox.lock_, how) {
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
  // A signal handler's too: its place is there from the thread's start.
  __attribute__((tls_model("initial-exec"))) static thread_local bool inside_;
  static constexpr std::int32_t unknown = -1, through_kernel = -2; // else a place in receivers_
  [[nodiscard]] Result<std::int32_t> ask(int row);
  [[nodiscard]] std::int32_t number_of(int row); // lock_ held
  [[nodiscard]] bool has_departed(const Receiver& receiver) const {
    return own_.kernel.to[receiver.queue].departed.load(std::memory_order_acquire) != 0;
  }
  [[nodiscard]] static bool computes(const Receiver& receiver);
  static void describe(shm::Cell& cell, const LocalMessage& message);
  void look_at_departures();
  void reclaim(Receiver& receiver);
  void reclaim_all();
  void fill(shm::Cell& cell, const LocalMessage& message);
  [[nodiscard]] Sent wait(Receiver& receiver, const LocalMessage& message, parc_op write);
  [[nodiscard]] Waiting* hold(const LocalMessage& message, parc_op write);
  [[nodiscard]] LocalMessage message_of(const Waiting& waits, iovec& piece);
  struct Went {
    bool some = false, rings = false, ended = false;
    std::uint64_t standing = 0, bytes = 0; // messages that wait for so long that it is to be said
  };
  [[nodiscard]] Went go_on(Receiver& receiver);
  [[nodiscard]] Went flush_next(std::size_t& next, int& row);
  void drop(Receiver& receiver, Waiting& waits);
  [[nodiscard]] std::vector<std::uint16_t>& free_bodies(std::uint64_t length) {
    return length <= shm::small_body ? free_small_ : length <= shm::short_message ? free_large_ : free_huge_;
  }
  [[nodiscard]] bool has_cell(Receiver& receiver);
  [[nodiscard]] bool has_body(Receiver& receiver, std::uint64_t length);
  [[nodiscard]] bool has_room_for_fragment(Receiver& receiver);
  [[nodiscard]] std::uint16_t take_cell();
  [[nodiscard]] bool publish(Receiver& receiver, const LocalMessage& message);
  [[nodiscard]] bool must_ring(Receiver& receiver);
  void ring(int row);
  void interrupt(Receiver& receiver);
  [[nodiscard]] Receiver& receiver_at(int row) {
    return *receivers_[static_cast<std::size_t>(number_of(row))];
  } // lock_ held
  [[nodiscard]] std::atomic<std::uint64_t>& offer_word(parc_op id) {
    return own_.all.offers[shm::index_of(slot_of(id)) % shm::most_offers];
  }
  // `whole`: only by a read that takes fragments of as much.
  [[nodiscard]] std::optional<Taken> take(int row, protocol::Space space, std::uint64_t tag,
                                          std::optional<std::uint64_t> whole);
  [[nodiscard]] bool sent_before(const Receiver& receiver, protocol::Space space, std::uint64_t tag,
                                 std::uint64_t ignore) const;

  shm::Letterbox& own_;
  Areas& areas_;
  std::mutex& areas_lock_;
  shm::NeighbourCounters& counters_; // one writer: who holds lock_
  Operations& operations_;
  CopyRoom& room_;
  ControlCalls& control_calls_;
  Ring& ring_;
  Backlog& standing_;
  const std::vector<bool> local_ranks_;
  std::mutex lock_;
  std::vector<std::int32_t> by_row_;
  std::vector<std::unique_ptr<Receiver>> receivers_;
  bool closed_ = false;
  std::vector<std::uint16_t> free_cells_, free_small_, free_large_, free_huge_; // and bodies
  CellShares shares_;
  std::uint32_t changes_ = 0; // of the letterbox, looked at
  MessagesIn<Waiting> memory_;
  std::vector<Receiver*> backlogged_; // for which messages wait
  std::atomic<std::size_t> waiting_pairs_ = 0;
  bool asleep_ = false; // a thread of this program is, or may be
};

} // namespace parc::client
