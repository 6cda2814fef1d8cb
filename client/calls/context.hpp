// SPDX-License-Identifier: BSD-3-Clause
// A program's membership of its job: the session with the kernel, and the actors on it in the order in which
// they stand on each other. Everything of parc.h that is not one call of an actor is here. Threads: any, as
// parc.h says.
#pragma once

#include "client/calls/completions.hpp"
#include "client/calls/starter.hpp"
#include "client/calls/waiter.hpp"
#include "client/memory/copying_thread.hpp"
#include "client/session/join.hpp"

#include <array>

namespace parc::client {

class Context {
public:
  Context(Session session, Adoption& adoption, Fd trace);
  // After that; nothing has been started before. Errors: as Neighbours::open.
  [[nodiscard]] Result<void> open_letterbox();

  [[nodiscard]] int rank() const { return session_.rank; }
  [[nodiscard]] int size() const { return session_.size; }
  [[nodiscard]] const char* host(int rank) const;

  [[nodiscard]] Operations& operations() { return operations_; }
  [[nodiscard]] Starter& starts() { return starter_; }
  [[nodiscard]] Waiter& waits() { return waiter_; }
  [[nodiscard]] Completions& completions() { return completions_; }
  [[nodiscard]] int descriptor();
  void put_off(std::uint64_t operations, int peer) { sleep_.backlog().put_off(operations, peer); }
  // Memory that is not used any more goes back.
  void look() {
    arena_.look();
    neighbour_windows_.look();
  }
  [[nodiscard]] Arena& arena() { return arena_; }
  [[nodiscard]] CopyRoom& copy_room() { return room_; }
  void set_level(Level level); // of early release
  [[nodiscard]] Guards& guards() { return guards_; }
  [[nodiscard]] Trace& trace() { return trace_; }

  [[nodiscard]] int read(const parc_envelope& envelope, const iovec& buffer, parc_status* status);
  [[nodiscard]] int write(const parc_envelope& envelope, const iovec& buffer);
  [[nodiscard]] int probe(const parc_envelope& envelope, bool wait, parc_status& status);
  [[nodiscard]] int address_of(int peer, char* text, std::size_t bytes);
  [[nodiscard]] int add_peer(const char* address);
  [[nodiscard]] int spawn(const char* const* arguments, int count, const char* hosts, int* peers);
  [[nodiscard]] int parent();
  [[nodiscard]] int signal(int peer, int number);
  [[nodiscard]] int expose(std::uint64_t window, void* memory, std::size_t bytes, unsigned rights);
  [[nodiscard]] int unexpose(std::uint64_t window);
  [[nodiscard]] int get(const parc_place& from, const iovec& buffer);
  [[nodiscard]] int atomic(const parc_place& at, const protocol::Atomic& atomic, std::uint64_t* before);
  [[nodiscard]] int put(const parc_place& to, const iovec& buffer);
  [[nodiscard]] int barrier();
  [[noreturn]] void abort(int status);

  // Tells the kernel that this program goes, which ends its reads; from the answer on it needs nothing of
  // this process but the memory that it has attached. Nothing is asked of the kernel after that: what starts
  // is refused, and parc_free does nothing. Later calls wait until that is done.
  void leave();

  // Memory of the program goes: nothing of it may be guarded any more.
  void free(void* block);

  // A small block of the program, and its way back, where there is nothing else to do. nullptr, false: there
  // is.
  [[nodiscard]] void* take_piece(std::size_t bytes) {
    return guards_.any() ? nullptr : arena_.take_piece(bytes);
  }
  [[nodiscard]] bool give_piece(const void* piece) {
    return !guards_.any() && !ring_.closed() && arena_.give_piece(piece);
  }

  void close_pipes_in_child() {
    Interrupts::forget();
    copying_thread_.forget();
    pipes_.close_in_child();
    sleep_.close_in_child();
    trace_.close_in_child();
  }

private:
  [[nodiscard]] int finish(parc_op id, parc_status* status);
  [[nodiscard]] Result<void> start_barrier_round(std::uint64_t tag);

  Session session_;
  Adoption& adoption_; // of the process
  shm::Control& control_;
  Pipes pipes_;
  Ring ring_;
  Sleep sleep_;
  Trace trace_;
  ControlCalls control_calls_;
  OwnCopies own_copies_;
  CopyingThread copying_thread_;
  Arena arena_;
  CopyRoom room_;
  OperationTable table_;
  Operations operations_;
  HandOver hand_over_;
  Guards guards_;
  LateReads late_reads_;
  std::unique_ptr<Neighbours> neighbours_; // none: all messages go through the kernel
  NeighbourWindows neighbour_windows_;
  Starter starter_;
  Waiter waiter_;
  Completions completions_;

  std::mutex leaving_;
  std::mutex barrier_lock_;
  // Under barrier_lock_: barriers that are over, and how far this one is.
  std::uint32_t barriers_ = 0;
  std::int64_t barrier_distance_ = 1;
  std::array<parc_op, 2> barrier_round_{}; // its write and its read, as far as they are started
};

} // namespace parc::client
