// SPDX-License-Identifier: BSD-3-Clause
// The programs of this host that spawn others (PARC 1994, section 3: "dynamic process generation"): what they
// ask for goes to the origin of their job, which makes a job of its own of it, or of none where they were
// started by hand; and what becomes of that comes back here (control/kernel_messages.hpp
// has the messages).
//
// Invariant: a listener hears `prepared` at most once, and `started` once; `exited` at most once for each
// rank, before `started` where it ends at once, and never when the origin is lost.
#pragma once

#include "daemon/base/post.hpp"
#include "daemon/program/sessions.hpp"
#include "daemon/program/spawn_request.hpp"

#include <cstdint>
#include <map>
#include <string>

namespace parc::daemon {

class Jobs;

class Spawners {
public:
  Spawners(Post& post, Jobs& jobs);

  void ask(const Sessions::Member& member, pid_t process, const SpawnRequest& request,
           SpawnListener listener);
  // parc_kill: of a rank of a job that this host has a part of, or that one of its programs has spawned.
  // False: there is none.
  bool signal(std::uint64_t job, std::uint32_t rank, int signal);
  void program_killed(std::uint64_t endpoint);

  void link_lost(std::uint32_t link);

private:
  struct SpawnCall {
    std::uint64_t endpoint; // of its spawner
    std::int32_t origin;    // link, or this_host
    std::uint32_t size;
    SpawnListener listener;
    std::uint64_t job = 0; // until it is prepared
    bool known = false;    // to its spawner, whose table has them
    bool started = false;
    bool orphaned = false; // its spawner was killed
    bool mpi = false;      // who asked is a PMIx server, which ends with its job: others may go on
    std::uint32_t exits = 0;
  };
  // What this kernel has asked for; none: it has not, or somebody else answers.
  [[nodiscard]] SpawnCall* asked(std::int32_t from, std::uint64_t token);
  void ask_by_hand(std::uint64_t token, pid_t process, const SpawnRequest& request);
  void heard(std::int32_t from, const kernel::SpawnPrepared& message);
  void heard(std::int32_t from, const kernel::SpawnStarted& message);
  void heard(std::int32_t from, const kernel::SpawnExit& message);
  void heard(std::int32_t from, const kernel::SpawnFailed& message);
  void end(const SpawnCall& spawned);

  Post& post_;
  Jobs& jobs_;
  std::uint64_t last_token_ = 0;
  std::map<std::uint64_t, SpawnCall> calls_; // by token
};

} // namespace parc::daemon
