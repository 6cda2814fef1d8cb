// SPDX-License-Identifier: BSD-3-Clause
// The programs of this host that spawn others (PARC 1994, section 3: "dynamic process generation"): what they
// ask for goes to the origin of their job, which makes a job of its own of it, or of none where they were
// started by hand; and what becomes of that comes back here.
//
//   spawner's kernel        origin of its job, and of the spawned one
//   spawn           ->                          how many, where, which program
//                   <-      spawn_prepared      there are endpoints for all of them
//   spawn_known     ->                          the spawner has them in its table: they may start
//                   <-      spawn_started       all run
//                   <-      spawn_failed        they do not: a sentence
//                   <-      spawn_exit          the status of one that has ended
//   end_spawned     ->                          the spawner was killed
//   signal_rank     ->                          parc_kill
//
// Invariant: a listener hears `prepared` at most once, and `started` once; `exited` at most once for each
// rank, before `started` where it ends at once, and never when the origin is lost.
#pragma once

#include "daemon/program/sessions.hpp"
#include "daemon/program/spawn_request.hpp"

#include <cstdint>
#include <map>
#include <nlohmann/json.hpp>
#include <string>

namespace parc::daemon {

class Jobs;
class Peers;

class Spawners {
public:
  Spawners(Jobs& jobs, Peers& peers) : jobs_(jobs), peers_(peers) {}

  void ask(const Sessions::Place& place, pid_t process, const SpawnRequest& request, SpawnListener listener);
  // Of a job that was spawned here; false: there is none.
  bool signal(std::uint64_t job, std::uint32_t rank, int signal);
  void program_killed(std::uint64_t endpoint);

  void received(std::int32_t from, const std::string& kind, const nlohmann::json& message);
  void link_lost(std::uint32_t link);

private:
  struct Spawned {
    std::uint64_t endpoint; // of its spawner
    std::int32_t origin;    // link, or this_host
    std::uint32_t size;
    SpawnListener listener;
    std::uint64_t job = 0; // until it is prepared
    bool known = false;    // to its spawner, whose table has them
    bool started = false;
    bool orphaned = false; // its spawner was killed
    std::uint32_t exits = 0;
  };
  void prepared(std::uint64_t token, Spawned& spawned, const nlohmann::json& message);
  void end(const Spawned& spawned);

  Jobs& jobs_;
  Peers& peers_;
  std::uint64_t last_token_ = 0;
  std::map<std::uint64_t, Spawned> spawned_; // by token
};

} // namespace parc::daemon
