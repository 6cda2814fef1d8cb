// SPDX-License-Identifier: BSD-3-Clause
// The programs of this host: each has two pipes, a control segment and data segments. Sessions own these; the
// engine owns the operations.
#pragma once

#include "daemon/base/cookie.hpp"
#include "daemon/base/counters.hpp"
#include "daemon/base/event.hpp"
#include "daemon/base/loop.hpp"
#include "daemon/program/letterboxes.hpp"
#include "daemon/program/spawn_request.hpp"
#include "protocol/engine.hpp"
#include "system/error.hpp"
#include "system/fd.hpp"
#include "system/observe/unfinished.hpp"

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <sys/types.h>
#include <unordered_map>
#include <vector>

namespace parc::daemon {

class Peers;
class Session;

class Sessions {
public:
  struct Member { // in a job
    std::uint64_t job;
    std::int32_t rank;
    std::int32_t size;
    std::uint64_t endpoint; // in the engine
  };
  enum class End {
    left,   // parc_close or exit: what it wrote is delivered
    broken, // its pipe ended or it broke the rules: everything unfinished is aborted
  };
  using Ended = std::function<void(End)>;
  struct Events {                                           // called at a step's end
    std::function<void(const Member&, int status)> aborted; // it called parc_abort
    std::function<void(const Member&)> departs;             // it leaves cleanly; `ended` follows
    // It has left a neighbour's message unread; at once.
    std::function<void(std::uint64_t endpoint, const protocol::Address& from, const protocol::Outcome&)>
        unread;
    std::function<void(const Member&, pid_t process, const SpawnRequest&, SpawnListener)> spawn; // parc_spawn
    // parc_kill; false: that job is neither the program's nor one that it has spawned.
    std::function<bool(std::uint64_t job, std::uint32_t rank, int signal)> signal;
  };
  struct Settings { // to each program that attaches
    std::string host;
    std::uint32_t copy_ns_per_kib;      // a memcpy on this machine
    std::optional<shm::Progress> local; // none: neighbours exchange messages through the kernel
    bool may_reach;                     // the kernel reaches what they do not share, where it is permitted,
    bool cross_memory;                  // for messages of neighbours, too
  };
  Sessions(Loop& loop, protocol::Engine& engine, Peers& peers, Settings settings, Events events);
  ~Sessions();

  // A program that will say hello over these pipes (non-blocking, close-on-exec). `ended` is called once, at
  // a step's end.
  void add(const Member& member, Fd from_program, Fd to_program, Ended ended);
  void add_by_hand(Fd from_program, Fd to_program); // as a job of one rank
  void turned_away() { ++totals_.refused; }         // somebody who has not become a program here
  // The process is gone (pidfd): ends its session if there is one still.
  void process_died(std::uint64_t endpoint);

  std::uint64_t take_requests(); // the turn's first step
  // For what takes a core for long, by what programs say that are listened to: where one rests and none
  // computes; where none rests, away from where one computes.
  [[nodiscard]] int better_core(int here) const;
  bool ring(); // after each step: wakes programs for whom something was completed; any?
  [[nodiscard]] bool any_spinning();
  [[nodiscard]] bool any_in_burst() const;
  [[nodiscard]] bool any_requests() const;
  void announce_sleep();
  void announce_awake();

  // From the kernel's Listener.
  void begun(Cookie cookie, const protocol::Outcome& outcome);
  void progressed(Cookie cookie, const protocol::Progress& progress);
  void finished(Cookie cookie, const protocol::Outcome& outcome);
  void backlog_changed(std::uint64_t endpoint_cookie);
  void drained(std::uint64_t endpoint_cookie);
  void departed(std::uint64_t endpoint, protocol::Departure how);
  bool place(std::uint64_t endpoint_cookie, const protocol::Place& place, bool acquainted,
             protocol::Pieces& memory, std::uint64_t& hold);
  void let_go(std::uint64_t hold);

  // The session of the program that shares most memory ends. False: there is none.
  bool give_up_largest();
  [[nodiscard]] bool none() const { return numbers_.empty(); }
  [[nodiscard]] std::uint64_t so_far() const { return totals_.attached; }
  void publish(Counters& counters); // for `parc status`
  // What can be seen of a program; `state` stays as it is where that is nothing.
  void look_at(std::uint64_t endpoint, std::size_t most, RankState& state) const;

private:
  friend class Session;
  Session* find(Cookie cookie);
  [[nodiscard]] Session* of_endpoint(std::uint64_t endpoint) const;
  void over(std::uint32_t number); // a drained session has ended
  void forget(std::uint32_t number);
  // From sessions. What a turn costs is what these lists hold, not how many programs there are.
  void listen_to(Session& session); // it has requests, or may soon have some without a bell
  void tell(Session& session);      // it has something to tell its program
  void changed(Session& session);   // its counters have
  void memory_used();               // some of its segments are mapped again
  void let_go();
  void tell_neighbour(std::uint64_t endpoint); // its program is to look at its letterbox

  struct Totals { // since the start
    std::uint64_t attached = 0, refused = 0, wakes = 0;
  };

  Loop& loop_;
  protocol::Engine& engine_;
  Peers& peers_;
  Settings settings_;
  Letterboxes letterboxes_;
  Events events_;
  Totals totals_;
  std::vector<std::unique_ptr<Session>> sessions_;           // by the number in their cookies
  std::vector<std::uint32_t> free_;                          // empty places
  std::unordered_map<std::uint64_t, std::uint32_t> numbers_; // by endpoint
  std::vector<Session*> listened_to_; // the others ring with every request (Session::park)
  std::vector<Session*> telling_;
  std::vector<Session*> unpublished_;
  std::uint64_t attached_ = 0;
  Timer let_go_;         // of segments' pages
  bool lets_go_ = false; // it is set
};

} // namespace parc::daemon
