// SPDX-License-Identifier: BSD-3-Clause
// Starting operations: checks what the program asked for, finds or makes memory that the kernel has mapped,
// and sends the request. A buffer inside the arena is named as it is (direct), and so is that of a read in
// memory that was adopted (early/adoption.hpp: what reads that may be released early need). Any other is
// bounced: a write's bytes are copied into the arena here, a read gets a landing place there, copied out when
// it is finished. But a long message between neighbours stays where it is: the kernel reaches any memory of
// the program, where the system lets it. A short write is copied although it could be direct: its wait then
// returns at once, which is worth more than the copy. So is a write of adopted memory, as if it had not been:
// handing over a copy later costs a round trip to the kernel, and free() would leave nothing to copy. What an
// earlier read that was released still misses of the memory is waited for first: a write would send old
// bytes, and a second read's bytes could be followed by the first's. Threads: any.
#pragma once

#include "client/early/adoption.hpp"
#include "client/early/guards.hpp"
#include "client/local/neighbour_windows.hpp"
#include "client/local/neighbours.hpp"
#include "client/operation/late_reads.hpp"
#include "protocol/wire.hpp"

#include <optional>

namespace parc::client {

class Starter {
public:
  Starter(Arena& arena, Adoption& adoption, CopyRoom& room, Operations& operations, Guards& guards,
          Ring& ring, Sleep& sleep, LateReads& late_reads, const std::unique_ptr<Neighbours>& neighbours,
          NeighbourWindows& windows, int ranks)
      : arena_(arena), adoption_(adoption), room_(room), operations_(operations), guards_(guards),
        ring_(ring), sleep_(sleep), late_reads_(late_reads), neighbours_(neighbours), windows_(windows),
        ranks_(ranks) {}

  // The calls of parc.h with the same names, and with their errors.
  // `blocking`: a wait follows.
  [[nodiscard]] Result<parc_op> read(const parc_envelope& envelope, std::span<const iovec> pieces,
                                     unsigned flags, bool blocking = false);
  [[nodiscard]] Result<parc_op> write(const parc_envelope& envelope, std::span<const iovec> pieces,
                                      unsigned flags, bool blocking = false);

  // Blocking calls, and writes with PARC_AT_ONCE, that are over without an operation: a short message of a
  // neighbour is taken from where it lies, or published. False: begin one.
  [[nodiscard]] bool read_at_once(const parc_envelope& envelope, const iovec& buffer, parc_status& status);
  [[nodiscard]] bool write_at_once(const parc_envelope& envelope, std::span<const iovec> pieces,
                                   unsigned flags);
  [[nodiscard]] Result<parc_op> probe(const parc_envelope& envelope, unsigned flags);
  // Of a probe that does not wait: it would find no message. False: it may find one, or fail.
  [[nodiscard]] bool finds_nothing(const parc_envelope& envelope, unsigned flags);
  [[nodiscard]] Result<parc_op> read_claimed(parc_op claim, std::span<const iovec> pieces, unsigned flags);

  [[nodiscard]] Result<parc_op> name_peer(int peer, const iovec& text);
  [[nodiscard]] Result<parc_op> add_peer(std::string_view address);
  // `texts`: as RequestKind::spawn says; the answer comes into `room`.
  [[nodiscard]] Result<parc_op> spawn(std::string_view texts, int count, const iovec& room);
  [[nodiscard]] Result<parc_op> signal(int peer, int number);
  [[nodiscard]] Result<parc_op> exit_of(int peer, unsigned flags);

  // Blocking calls on windows of neighbours that are over without an operation: this thread copies. False:
  // begin one.
  // brief: only where nothing has to be asked or looked for first.
  enum class Pace : std::uint8_t { full, brief };
  [[nodiscard]] bool get_at_once(const parc_place& from, const iovec& buffer, Pace pace = Pace::full);
  [[nodiscard]] bool put_at_once(const parc_place& to, const iovec& buffer, Pace pace = Pace::full);
  [[nodiscard]] bool operate_at_once(const parc_place& at, const protocol::Atomic& atomic,
                                     std::uint64_t* before, Pace pace = Pace::full);

  [[nodiscard]] Result<parc_op> unexpose(std::uint64_t window);
  [[nodiscard]] Result<parc_op> get(const parc_place& from, std::span<const iovec> pieces, unsigned flags,
                                    const std::optional<protocol::Rows>& rows = {});
  [[nodiscard]] Result<parc_op> atomic(const parc_place& at, const protocol::Atomic& atomic,
                                       std::uint64_t* before, unsigned flags);
  [[nodiscard]] Result<parc_op> put(const parc_place& to, std::span<const iovec> pieces, unsigned flags,
                                    const std::optional<protocol::Rows>& rows = {});

  // An empty message that no read of the program sees.
  [[nodiscard]] Result<parc_op> barrier_read(int peer, std::uint64_t tag);
  [[nodiscard]] Result<parc_op> barrier_write(int peer, std::uint64_t tag);

  [[nodiscard]] Result<void> cancel(parc_op id);

  // Of the reads that are started from here on.
  void set_order(Order order) { order_.store(order, std::memory_order_relaxed); }

private:
  [[nodiscard]] Result<void> check_peer(int peer, bool any) const;
  [[nodiscard]] static Result<void> check(Message& message, const parc_envelope& envelope,
                                          std::span<const iovec> pieces, unsigned flags, unsigned known);
  static void set_flags(Message& message, MessageFlags flags);
  void prepare_release(Message& message, shm::RequestKind kind);
  [[nodiscard]] Result<bool> leaves_the_host(const Message& get);
  [[nodiscard]] bool may_copy();
  [[nodiscard]] bool may_enter(int peer);
  [[nodiscard]] bool is_look_due();
  void look_after_copies();
  template <class Use> [[nodiscard]] bool use_briefly(const parc_place& place, std::uint64_t length,
                                                      std::uint32_t right, const Use& use);
  template <class Use> [[nodiscard]] bool use_at_once(const parc_place& place, std::uint64_t length,
                                                      std::uint32_t right, const Use& use);
  template <class Use> [[nodiscard]] Result<parc_op> start_here(shm::RequestKind kind, Message& message,
                                                                const parc_place& place, std::uint32_t right,
                                                                const Use& use);
  [[nodiscard]] Result<void> prepare_read(Message& message, bool of_neighbour);
  void settle(std::span<const iovec> pieces, Guards::Use use);
  [[nodiscard]] bool in_arena(const iovec& piece) const;
  [[nodiscard]] bool is_direct(Message& message, bool may_adopt);
  [[nodiscard]] Result<void> locate_read(Message& message);
  [[nodiscard]] Result<void> give_memory(Message& message);
  [[nodiscard]] bool may_be_let_go(const Message& message) const;
  [[nodiscard]] Result<void> locate_write(Message& message);
  [[nodiscard]] bool locate_short_write(Message& message);
  static void name_block(Message& message, void* block);
  [[nodiscard]] Result<void> name_directly(Message& message);
  [[nodiscard]] bool may_name_own_memory(const Message& message) const;
  [[nodiscard]] bool may_name_own_memory_of_write(const Message& message) const;
  static void name_own_memory(Message& message);
  [[nodiscard]] Error refused() const; // why a request could not be pushed
  [[nodiscard]] static shm::Request request_of(shm::RequestKind kind, const Message& message);
  [[nodiscard]] Result<parc_op> ask(Message& message, shm::RequestKind kind);
  [[nodiscard]] Result<bool> reaches(int peer); // a message to it goes to its letterbox
  [[nodiscard]] static bool fits_a_body(const Message& message);
  [[nodiscard]] static bool is_short(const Message& message);
  [[nodiscard]] bool look_around();
  [[nodiscard]] Result<parc_op> tell_at_once(const Message& message);
  [[nodiscard]] bool may_come_in_fragments(const Message& message) const;
  [[nodiscard]] Result<parc_op> tell_in_fragments(const Message& message);
  [[nodiscard]] bool make_place_for_long_write(Message& message);
  void hold_copy(parc_op id, const Message& message);
  [[nodiscard]] Result<parc_op> tell_taken(parc_op id, const Message& message, const Outbox::Taken& taken);
  [[nodiscard]] Result<parc_op> tell(Message& message);
  // Puts and atomics on neighbours' memory, which what goes to their letterboxes would pass.
  [[nodiscard]] bool puts_are_settled();
  [[nodiscard]] bool knows_puts_settled() const { // without looking
    return local_puts_.load(std::memory_order_acquire) == settled_puts_.load(std::memory_order_relaxed);
  }
  void settle_puts(int peer); // those to it
  [[nodiscard]] Result<parc_op> send_put(const shm::Request& request, const Message& message);
  [[nodiscard]] Result<parc_op> send(shm::RequestKind kind, const Message& message);
  [[nodiscard]] Result<parc_op> send(shm::Request request, const Message& message);

  Arena& arena_;
  Adoption& adoption_;
  CopyRoom& room_;
  Operations& operations_;
  Guards& guards_;
  Ring& ring_;
  Sleep& sleep_;
  LateReads& late_reads_;
  const std::unique_ptr<Neighbours>& neighbours_; // none: everything goes through the kernel
  NeighbourWindows& windows_;
  const int ranks_;
  std::atomic<Order> order_ = Order::any;
  std::atomic<std::uint64_t> local_puts_ = 0, settled_puts_ = 0; // started, and of these surely in place
  std::atomic<std::uint32_t> asked_ = 0, copies_ = 0;            // for that; made here
};

} // namespace parc::client
