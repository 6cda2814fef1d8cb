// SPDX-License-Identifier: BSD-3-Clause
// Messages between programs of one host, without their kernel where they are short; where they are long their
// envelopes go this way, too, and the kernel copies their bytes. All messages of a pair go one way, so their
// order is that of the writes. There is none of this where the kernel is asked for everything (`local =
// kernel`), and a program whose waits are released at once (PARC_RELEASE_FULL) sends nothing this way: what
// it must hold back the kernel holds. Threads: any, as the calls of parc.h. Only what Sleep asks for is
// async-signal-safe.
#pragma once

#include "client/local/interrupt.hpp"
#include "client/local/outbox.hpp"
#include "client/memory/own_copies.hpp"

namespace parc::client {

class Neighbours final : public LocalProgress {
public:
  struct Needs { // and outlives none of
    shm::Control& control;
    OwnCopies& own_copies;
    Operations& operations;
    CopyRoom& room;
    ControlCalls& control_calls;
    Ring& ring;
    Sleep& sleep;
    int rank;
    const std::vector<std::string>& hosts; // of the ranks
  };
  // Errors: as shm::Segment::attach.
  [[nodiscard]] static Result<std::unique_ptr<Neighbours>> open(const shm::LetterboxLocation& place,
                                                                const Needs& needs);
  ~Neighbours() override;
  Neighbours(const Neighbours&) = delete;
  Neighbours& operator=(const Neighbours&) = delete;

  // Messages for this peer go this way. Errors: PARC_ENOMEM.
  [[nodiscard]] Result<bool> reaches(int peer) { return outbox_.reaches(peer); }
  [[nodiscard]] bool knows(int peer) { return outbox_.knows(peer); } // the same, if it is known already
  [[nodiscard]] bool may_reach(int peer) { return outbox_.may_reach(peer); }     // or if it is not
  [[nodiscard]] bool anything_waits() const { return outbox_.anything_waits(); } // for a cell
  // The kernel reaches all of it.
  [[nodiscard]] bool own_memory_is_reached() const {
    return control_.header.cross_memory.load(std::memory_order_relaxed) == shm::CrossMemory::reached;
  }
  // As was seen: its handler may wait for other threads, which wait for our locks. Nothing of it is touched
  // under these.
  [[nodiscard]] bool pages_are_closed() const {
    return control_.header.cross_memory.load(std::memory_order_relaxed) == shm::CrossMemory::lost;
  }
  // A message that a read with this source may take may come this way.
  [[nodiscard]] bool may_send(int peer);
  // From here on all that is new goes through the kernel: this program's waits may be released before what
  // they wait for has begun. Blocks until the kernel knows.
  void stop();

  // Also a short message had better be given to a read that the receiver has posted.
  [[nodiscard]] bool may_take(int peer) { return outbox_.computes(peer); }
  [[nodiscard]] std::optional<Outbox::Taken> take(int peer, protocol::Space space, std::uint64_t tag) {
    return outbox_.take(peer, space, tag);
  }
  // A short message that can be over when this returns.
  [[nodiscard]] bool write_at_once(const Message& message) {
    return outbox_.send_at_once(message.envelope.peer, short_message(message));
  }
  // A short message; its write ends here, or when its message has left. Waits for no reader: a moment, at
  // most, where the program waits in any case. Errors: PARC_EAGAIN (no memory), PARC_ECANCELED.
  [[nodiscard]] Result<void> write(parc_op id, const Message& message);
  // A program that waits there may have posted a read for a long message: then that comes in fragments, which
  // both copy at the same time.
  [[nodiscard]] bool is_awaited(const Message& message);
  [[nodiscard]] std::optional<Outbox::Taken> take_for_fragments(const Message& message);
  [[nodiscard]] static LocalMessage first_fragment(const Message& message, const Outbox::Taken& taken);
  // From `next` on. True: the write has ended. False: the reader does not come back for more, from `next` on,
  // and the kernel may be asked for the whole message instead, as for any whose read was taken.
  [[nodiscard]] bool write_fragments(parc_op id, const Message& message, LocalMessage& next);
  // Whether the kernel may be asked to give up this write: none of a neighbour's, or nobody will take it.
  [[nodiscard]] bool may_cancel_write(parc_op id, int peer) {
    return !outbox_.knows(peer) || outbox_.withdraw(id);
  }
  // A write that waits for a cell is given up. False: it is the kernel's, or does not wait.
  [[nodiscard]] bool cancel_waiting(parc_op id, int peer);
  // The envelope of a write that the kernel has. Errors: the same.
  [[nodiscard]] Result<void> announce(parc_op id, const Message& message);

  // The program leaves. Returns when nothing waits for a cell any more: neighbours drain in their calls, and
  // those that depart need nothing.
  void close();

  // Of LocalProgress, as Sleep asks for it.
  bool progress() override;
  void look() override;
  void spread() override { inbox_.spread(); }
  [[nodiscard]] bool attend() override { return inbox_.attend(); }
  void attend_no_more() override { inbox_.attend_no_more(); }
  [[nodiscard]] bool announce_sleep() override;
  void announce_awake() override;
  void tell_others() override { inbox_.tell_others(); }
  [[nodiscard]] bool inside() const override { return Inbox::inside() || Outbox::inside(); }
  [[nodiscard]] bool forget(std::int64_t operation) override {
    return inbox_.forget(operation) && outbox_.forget(operation) && own_copies_.is_settled();
  }
  [[nodiscard]] Unplaced unplace(std::int64_t operation) override { return inbox_.unplace(operation); }
  [[nodiscard]] bool place_again(std::int64_t operation, void* block) override {
    return inbox_.place_again(operation, block);
  }
  [[nodiscard]] bool settled() override { return !own_copies_.under_way() && inbox_.settled(); }
  void settle_copies() override {
    own_copies_.settle();
    inbox_.settle();
  }

  [[nodiscard]] Inbox& inbox() { return inbox_; }

private:
  Neighbours(std::unique_ptr<Areas> areas, const Needs& needs, std::vector<bool> local_ranks);
  [[nodiscard]] static LocalMessage short_message(const Message& message);
  [[nodiscard]] Result<Outbox::Sent> send(int peer, const LocalMessage& message, parc_op write);
  void end_write(parc_op id, const Message& message, bool departed);
  void flush();
  void wait_for_reader(int peer);

  const shm::Control& control_;
  std::unique_ptr<Areas> areas_;
  Operations& operations_;
  ControlCalls& control_calls_;
  Sleep& sleep_;
  std::atomic<bool> stopped_ = false;
  const std::vector<bool> local_ranks_;
  Inbox inbox_;
  Outbox outbox_;
  OwnCopies& own_copies_;
  std::optional<Interrupts> interrupts_; // `local = signal`
};

} // namespace parc::client
