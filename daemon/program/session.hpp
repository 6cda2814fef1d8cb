// SPDX-License-Identifier: BSD-3-Clause
// One program's session: the kernel's view of its control segment. It trusts nothing in it: every index is
// masked, every id checked against the kernel's own table, every field read once from a private copy. A
// program that breaks the rules loses its session; one that names memory it does not share, or a rank that
// does not exist, gets PARC_EINVAL.
#pragma once

#include "daemon/program/added_peers.hpp"
#include "daemon/program/attached_windows.hpp"
#include "daemon/program/completion.hpp"
#include "daemon/program/extents.hpp"
#include "daemon/program/neighbour_reads.hpp"
#include "daemon/program/operation_table.hpp"
#include "daemon/program/process_memory.hpp"
#include "daemon/program/sessions.hpp"
#include "daemon/program/spawned_programs.hpp"
#include "daemon/program/windows.hpp"
#include "protocol/gate.hpp"
#include "shm/segment.hpp"
#include "shm/tables.hpp"

#include <array>
#include <cstdint>
#include <optional>
#include <unordered_map>
#include <vector>

namespace parc::daemon {

class Session {
public:
  Session(Loop& loop, protocol::Engine& engine, Peers& peers, Sessions& sessions, std::uint32_t number,
          const Sessions::Member& member, Fd from_program, Fd to_program, Sessions::Ended ended);

  static constexpr std::uint64_t requests_a_turn = 64;
  static constexpr std::uint32_t singles_of_burst = 5;
  // What the program asked for before it went: an abort may stand behind a full ring. Nobody takes another
  // turn for it, and it is never more than the ring holds.
  static constexpr std::uint64_t last_requests = shm::request_slots;
  std::uint64_t take_requests(std::uint64_t most = requests_a_turn);
  void begin_published();
  bool ring(); // wakes the program if something was completed and it sleeps
  void process_died();
  bool drained(); // the engine is done with its memory; true: the session's end has been acted on too

  // From the engine.
  void begun(Cookie cookie, const protocol::Outcome& outcome);
  void progressed(Cookie cookie, const protocol::Progress& progress);
  void finished(Cookie cookie, const protocol::Outcome& outcome);
  bool place(const protocol::Place& place, bool acquainted, protocol::Pieces& memory, std::uint64_t& hold);
  void let_go(std::uint64_t hold);
  // Of a window of a neighbour, as Windows::Close; and of its own.
  bool close_window(std::uint32_t entry, bool ended);
  void detach_window(std::size_t index, const Windows::Neighbour& neighbour);
  void look_at_windows(); // of a program that has ended, inside of one

  [[nodiscard]] bool open() const { return state_ != State::over; }
  [[nodiscard]] bool spinning();
  // It asks again and again, and does not do so for what it is told.
  [[nodiscard]] bool in_burst() const { return asked_singly_ >= singles_of_burst; }
  [[nodiscard]] std::uint32_t core_word() const; // as in shm/layout.hpp
  [[nodiscard]] bool has_requests() const;
  // It rings with every request from now on. False: it has made one, or polls.
  bool park();
  void announce_sleep();
  void announce_awake();
  [[nodiscard]] const Sessions::Member& member() const { return member_; }
  [[nodiscard]] bool attached() const { return control_ != nullptr && open(); }
  [[nodiscard]] bool left() const { return state_ == State::leaving; }
  void look_at(std::size_t most, RankState& state) const; // where it is attached
  void publish(Counters& counters);
  void backlog_changed();

private:
  friend class Sessions;
  enum class State : std::uint8_t { expected, running, leaving, over };
  using Slot = OperationTable::Slot;

  void hear();
  void watch_process();
  void attach(const shm::Attach& attach);
  void welcome(std::int32_t error);
  // Peers can be added to it: one that leaves may be forgotten by the engine before its pipe ends.
  [[nodiscard]] bool has_table() const { return open() && !left(); }
  [[nodiscard]] bool traced() const;
  void release_has_begun(Slot& slot);
  void answer(std::uint64_t slot, std::int32_t error);
  void answer_unmap(); // where its last use has ended
  void complete(std::uint64_t slot, const protocol::Outcome& outcome, std::int32_t error);
  void conclude(std::uint64_t id, const Completion& how); // if it is not over
  void completed();                                       // something the program may sleep for
  void broke(const char* rule);
  void end(Sessions::End how);
  [[nodiscard]] bool knows(std::uint64_t slot) const { return shm::is_control(slot) || tables_->has(slot); }
  shm::Operation& operation(std::uint64_t slot) { return tables_->operation(slot); }

  // session_requests.cpp
  void handle(const shm::Request& request);
  void refuse(const shm::Request& request);
  Slot* take_slot(const shm::Request& request, bool (*of_its_kind)(std::uint64_t));
  void start(const shm::Request& request);
  void begin(const shm::Request& request, Slot& slot);
  void refuse(Slot& slot, std::uint64_t number, std::int32_t error);
  void open_memory();
  [[nodiscard]] bool find_memory();
  [[nodiscard]] bool reaches(std::uint64_t address, std::uint64_t length) const;
  [[nodiscard]] bool has_copied() const; // what it was asked for
  [[nodiscard]] bool resolve(const shm::Request& request, protocol::Pieces& memory, Slot& slot);
  void hold_memory(const Extents::Used& used);
  [[nodiscard]] Session* neighbour(std::int32_t row) const; // that is attached
  [[nodiscard]] bool give_taken(const shm::Request& write);
  void connect_neighbour(const shm::Request& request);
  void ask_of_peers(const shm::Request& request);
  void hand_over(const shm::Request& request);
  void release(const shm::Request& request);
  void await_memory(std::uint64_t number, const protocol::Outcome& outcome);
  void place(const shm::Request& request);
  void unplace(const shm::Request& request);
  void map(const shm::Request& request);
  void unmap(const shm::Request& request);
  void grow(const shm::Request& request);
  void expose(const shm::Request& request);
  void unexpose(const shm::Request& request);
  void attach_window(const shm::Request& request);
  void leave_window(const shm::Request& request);
  void give_up_windows();
  [[nodiscard]] bool may_go() const { return acted_on_ && drained_ && attached_windows_.none(); }
  void get(const shm::Request& request);
  void put(const shm::Request& request);
  void atomic(const shm::Request& request);
  [[nodiscard]] std::uint64_t cookie_of(std::uint64_t id, const Slot& slot) const;
  [[nodiscard]] Slot* take_one_sided(const shm::Request& request, protocol::Pieces& memory);
  [[nodiscard]] static std::optional<protocol::Rows> rows_of(const shm::Request& request);
  void leave(const shm::Request& request);

  Loop& loop_;
  protocol::Engine& engine_;
  Sessions& sessions_;
  std::uint32_t number_;
  Sessions::Member member_;
  static constexpr unsigned most_asked_in_vain = 128; // turns without a look of a program that polls
  std::uint32_t looks_ = 0;                           // when it was asked last
  unsigned asked_in_vain_ = most_asked_in_vain;
  Fd from_program_;
  Fd to_program_;
  Sessions::Ended ended_;
  State state_ = State::expected;
  Event bell_;
  std::array<std::byte, sizeof(shm::Attach)> hello_{};
  std::size_t hello_length_ = 0;
  shm::Segment segment_;
  shm::Control* control_ = nullptr;
  std::optional<shm::Tables> tables_; // once attached
  std::vector<shm::Segment> blocks_;  // of these
  std::uint64_t head_ = 0;            // of the request ring, ours
  Extents extents_;
  Windows windows_;
  AttachedWindows attached_windows_;
  Timer windows_left_;                  // of a program that has ended: looks whether it is inside still
  std::optional<ProcessMemory> memory_; // where the kernel may reach all of it, and has use for that:
  bool copies_own_memory_ = false;      // messages of neighbours
  std::optional<WindowMemory> window_memory_;
  OperationTable slots_;           // once attached
  NeighbourReads neighbour_reads_; // that are in these
  pid_t pid_ = 0;                  // as it says itself
  Fd process_;                     // pidfd of who has made the control segment
  Event process_ended_;
  std::uint32_t reads_ = 0, writes_ = 0; // in flight
  struct Totals {                        // but of what neighbours have announced to each other
    std::uint64_t messages = 0, bytes = 0;
    void add(std::uint64_t length) {
      ++messages;
      bytes += length;
    }
  } received_, sent_;
  std::unordered_map<std::uint64_t, std::uint64_t>
      claims_;               // the engine's names of messages, by their probes' ids
  std::size_t claiming_ = 0; // probes that may claim one
  protocol::Gate gate_;
  std::uint64_t unmap_address_ = 0; // of an unmap that is answered when its last use ends
  AddedPeers added_peers_;
  SpawnedPrograms spawned_programs_;
  std::optional<SessionCounters> row_;
  bool drained_ = false;
  bool acted_on_ = false; // its end: nothing that is pending refers to it any more
  // Sessions': in which of its lists it is.
  bool listened_to_ = false, telling_ = false, unpublished_ = false;
  bool counted_ = false; // as attached
  std::uint32_t quiet_turns_ = 0;
  std::uint32_t asked_singly_ = 0; // requests that came one at a time, since a read of it was answered
  bool completed_ = false;         // something the program may sleep for
  bool progressed_ = false;        // something it sleeps for only if it watches
};

} // namespace parc::daemon
