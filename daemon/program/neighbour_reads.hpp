// SPDX-License-Identifier: BSD-3-Clause
// What a program exchanges with neighbours, as its kernel has to do with it: the way of a pair is made once,
// and a read that a neighbour's message may answer as well as one from another host is given to one of them.
//
// Invariants: nothing that a neighbour says can harm the program. What it claims has been published there,
// and its claim is checked.
#pragma once

#include "daemon/program/letterboxes.hpp"
#include "daemon/program/operation_table.hpp"
#include "daemon/program/sessions.hpp"
#include "protocol/engine.hpp"
#include "shm/tables.hpp"

#include <cstdint>
#include <optional>

namespace parc::daemon {

class NeighbourReads {
public:
  using Slot = OperationTable::Slot;
  struct Needs { // and outlives none of
    protocol::Engine& engine;
    Letterboxes& letterboxes;
    OperationTable& slots;
    const Sessions::Events& events; // `unread`
    const Sessions::Member& member; // the program's
  };
  explicit NeighbourReads(const Needs& needs) : needs_(needs) {}

  // The program is there, with these operations, and wants neighbours or not.
  void open(bool wanted, const shm::Tables& tables);
  [[nodiscard]] bool has_letterbox() const { return letterbox_.memory != nullptr; }
  [[nodiscard]] const shm::LetterboxLocation& letterbox() const {
    return letterbox_.place;
  } // where it has one

  // The endpoint in a row, of a program of this host.
  [[nodiscard]] std::optional<std::uint64_t> endpoint_in(std::int32_t row) const;
  // No pair gets a way from here on.
  void refuse() { wanted_ = false; }
  // The queue for messages to the neighbour in a row; -1: they go through the kernel. `other` is that
  // neighbour, where it is attached.
  [[nodiscard]] std::int32_t queue_to(std::int32_t row, const NeighbourReads* other);
  // From here on the program shares its reads: they may be answered, or fail, without its neighbours. It may
  // have begun to compute before it hears of that: those that it has published are here already.
  [[nodiscard]] bool must_ask_for_reads() const;
  void ask_for_reads() const;
  // Those up to `end`, oldest first, as it would share them, while use(read) is true.
  [[nodiscard]] std::uint64_t published() const {
    return letterbox_.memory->owner.posts.load(std::memory_order_seq_cst);
  }
  template <class Use> void each_published(std::uint64_t end, const Use& use) const {
    const std::uint64_t first = letterbox_.memory->owner.first.load(std::memory_order_acquire);
    if (end - first > shm::read_slots) return;
    for (std::uint64_t at = first; at != end; ++at)
      if (const auto read = shared_read(at); read && !use(*read)) return;
  }
  // That one, or a later one in its place, was shared, begun for it, or taken by a neighbour's write already.
  [[nodiscard]] bool is_known(std::uint64_t id) const;
  // A read that was begun for it, and that the library has had since, is over: its place has another.
  void forget_older(std::uint64_t id);
  // The program leaves a neighbour's message unread.
  void leave_unread(const shm::Request& request) const;

  // The kernel's half of a shared read ends: what comes for it is the library's to match.
  void withdraw(std::uint64_t id);
  // A read of a message that neighbours have matched, although that may not be here yet.
  [[nodiscard]] static bool is_matched(std::uint64_t id, const Slot& slot);
  // The read that a neighbour's write has taken, as if it were made now for that message alone; its slot is
  // taken. None: the claim is not true. `row` is the writer's here.
  [[nodiscard]] std::optional<shm::Request> take(const shm::Request& write, std::int32_t row);

  [[nodiscard]] protocol::OwnerWord owner_word(std::uint64_t number, const Slot& slot) const;
  enum class Teller { kernel, library, library_of_departure };
  // Who tells the program of a shared read's end. Where nothing comes from other hosts any more the program
  // is told that, and finds out whether a neighbour has still sent something.
  [[nodiscard]] Teller teller(std::uint64_t number, const Slot& slot, const protocol::Outcome& outcome);

private:
  [[nodiscard]] shm::Request request_of(const shm::PostedRead& posted, std::uint64_t id) const;
  [[nodiscard]] std::optional<shm::Request> shared_read(std::uint64_t at) const;
  [[nodiscard]] bool has_queue_from(std::int32_t row) const;

  const Needs needs_;
  Letterboxes::Box letterbox_{};        // where it has one
  const shm::Tables* tables_ = nullptr; // once it is open
  bool wanted_ = false;                 // to send to it, and to be sent to
};

} // namespace parc::daemon
