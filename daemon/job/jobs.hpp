// SPDX-License-Identifier: BSD-3-Clause
// The jobs of this kernel: those whose `parc run` talks to it (JobOrigin), and the parts of jobs whose ranks
// run here (JobPart). A job of this host alone is both, and they talk in messages all the same. Each message
// is handed to the one that it is for.
//
// Invariants: an origin or part is forgotten at a step's end; a peer's message reaches an origin or part only
// when it belongs to its job.
#pragma once

#include "daemon/base/counters.hpp"
#include "daemon/base/loop.hpp"
#include "daemon/base/post.hpp"
#include "daemon/job/job_origin.hpp"
#include "daemon/job/job_part.hpp"
#include "daemon/program/sessions.hpp"
#include "daemon/program/spawn_request.hpp"

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <random>
#include <string>
#include <utility>
#include <vector>

namespace parc::daemon {

class Jobs {
public:
  // `emptied`: called each time that the last job has gone.
  Jobs(Loop& loop, protocol::Engine& engine, Peers& peers, Sessions& sessions, Post& post,
       const RuntimeDir& runtime_dir, const Processes& processes, std::function<void()> emptied);
  ~Jobs(); // kills what still runs

  [[nodiscard]] bool none() const { return origins_.empty() && parts_.empty(); } // no job, at any stage
  void link_lost(std::uint32_t link);
  void abort(std::uint64_t job, std::int32_t rank, int status); // parc_abort of a rank here
  void rank_departs(std::uint64_t job, std::int32_t rank);      // its session has ended, or is about to
  void peer_departed(const protocol::Address& peer);            // this and unread: as Listener's
  void unread(std::uint64_t endpoint, const protocol::Address& from, const protocol::Outcome& message);
  void stop();                                              // tells everybody and ends the ranks here
  [[nodiscard]] bool stopping() const { return stopping_; } // no job begins any more

  void publish(Counters& counters);
  [[nodiscard]] std::size_t parts() const { return parts_.size(); }

  // Jobs, as tools are told: those of which this host knows; the hosts of one, each with its link (none of
  // them before all are reached); those that have ranks here.
  [[nodiscard]] std::vector<std::uint64_t> known() const;
  [[nodiscard]] std::vector<std::pair<std::string, std::int32_t>> hosts_of(std::uint64_t job) const;
  [[nodiscard]] std::vector<control::JobRow> list() const;
  bool kill(std::uint64_t job, std::uint32_t signal); // false: there is no such job here

  [[nodiscard]] std::uint64_t new_job(); // draws its number
  [[nodiscard]] JobOrigin* origin(std::uint64_t job) const;
  [[nodiscard]] JobPart* part(std::uint64_t job) const;
  // Makes the origin of a job that a tool asks for.
  void begin(std::uint64_t job, std::shared_ptr<JobClient> client, const tool::Run& run);
  // Makes the origin of a job that a program spawns, and returns the job. `first`: the number of its first
  // rank in the job that it belongs to (Spawner::root).
  std::uint64_t spawn(const JobOrigin::Spawner& spawner, std::uint32_t first, const Program& program,
                      const RanksOfApps& ranks);
  void spawned_over(std::uint64_t job, std::uint64_t root, const std::string& text);
  void introduce(JobOrigin& begins); // to others of MPI, here and where there are links to, and these to it
  void link_up(std::uint32_t link);
  using Spawn = std::function<void(const Sessions::Member&, const SpawnRequest&, SpawnListener)>;
  void on_spawn(Spawn spawn) { spawn_ = std::move(spawn); } // for programs that have no session to ask in
  void ask_to_spawn(const Sessions::Member& asks, const SpawnRequest& request, SpawnListener listener) {
    spawn_(asks, request, std::move(listener));
  }
  void forget_origin(std::uint64_t job);
  void forget_part(std::uint64_t job);

private:
  template <class... Messages> void take_from_parts();
  template <class... Messages> void take_from_origins();
  void prepare(std::int32_t from, const kernel::Prepare& message);
  void mpi_begins(std::int32_t from, const kernel::MpiBegins& message);
  JobOrigin& make_origin(std::uint64_t job, std::shared_ptr<JobClient> client,
                         std::optional<JobOrigin::Spawner> spawner);

  Loop& loop_;
  protocol::Engine& engine_;
  Peers& peers_;
  Sessions& sessions_;
  Post& post_;
  const RuntimeDir& runtime_dir_;
  const Processes& processes_;
  std::function<void()> emptied_;
  Spawn spawn_;
  std::mt19937_64 ids_; // draws numbers of jobs; its seed is this kernel's identity
  Cores cores_;
  std::map<std::uint64_t, std::unique_ptr<JobOrigin>> origins_;
  std::map<std::uint64_t, std::unique_ptr<JobPart>> parts_;
  std::map<std::uint64_t, JobCounters> rows_; // counters of parts
  bool stopping_ = false;
};

} // namespace parc::daemon
