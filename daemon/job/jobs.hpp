// SPDX-License-Identifier: BSD-3-Clause
// The jobs of this kernel: those whose `parc run` talks to it (JobOrigin), and the parts of jobs whose ranks
// run here (JobPart). A job of this host alone is both, and they talk in messages all the same. This is the
// post office between them.
//
// Invariants: a message is delivered at a step's end, never inside a call of its sender; an origin or part is
// forgotten at a step's end too; a peer's message reaches an origin or part only when it belongs to its job.
#pragma once

#include "daemon/base/counters.hpp"
#include "daemon/base/loop.hpp"
#include "daemon/job/job_origin.hpp"
#include "daemon/job/job_part.hpp"
#include "daemon/join/joins.hpp"
#include "daemon/spawn/spawners.hpp"
#include "daemon/tool/tool_session.hpp"
#include "system/fd.hpp"

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <random>
#include <string>
#include <utility>
#include <vector>

namespace parc::daemon {

class Control;

class Jobs {
public:
  // `stopped`: see shutting_down().
  Jobs(Loop& loop, protocol::Engine& engine, Peers& peers, Sessions& sessions, Control& control,
       const RuntimeDir& runtime_dir, const Config& config, const Processes& processes,
       std::function<void()> stopped);
  ~Jobs(); // kills what still runs

  // From the kernel.
  void tool_connected(Fd socket); // its user is ours
  void joiner_connected(Fd socket, const std::string& wants) { joins_.joiner(std::move(socket), wants); }
  // Nobody asks for one, or looks at one; none runs here, begins, or meets at this host.
  [[nodiscard]] bool none() const {
    return tools_.empty() && origins_.empty() && parts_.empty() && joins_.none() &&
           joins_.jobs().numbers().empty();
  }
  void received(std::uint32_t link, nlohmann::json message, std::string bytes);
  void link_lost(std::uint32_t link);
  void abort(std::uint64_t job, std::int32_t rank, int status); // parc_abort of a rank here
  void rank_departs(std::uint64_t job, std::int32_t rank);      // its session has ended, or is about to
  void peer_departed(const protocol::Address& peer);            // as Listener's, both
  void unread(std::uint64_t endpoint, const protocol::Address& from, const protocol::Outcome& message);
  void spawn(const Sessions::Place& place, pid_t process, const SpawnRequest& request,
             SpawnListener listener) { // parc_spawn
    spawners_.ask(place, process, request, std::move(listener));
  }
  // parc_kill: of a rank of a job that this host has a part of, or that one of its programs has spawned.
  bool signal(std::uint64_t job, std::uint32_t rank, int signal);
  void program_killed(std::uint64_t endpoint) { spawners_.program_killed(endpoint); }
  // Tells everybody and ends the ranks here; `stopped` is called when all that has been said.
  void shutting_down();
  [[nodiscard]] bool stopping() const { return stopping_; } // no job begins any more

  void publish(Counters& counters);

  // For dumps: jobs of which this host knows, and the hosts of one, each with its link; none: not yet
  // reached.
  [[nodiscard]] std::vector<std::uint64_t> known() const;
  [[nodiscard]] std::vector<std::pair<std::string, std::int32_t>> hosts_of(std::uint64_t job) const;

  [[nodiscard]] std::uint64_t new_job(); // a number
  // For origins and parts. `host` is a link, or this_host.
  void tell(std::int32_t host, nlohmann::json message, std::string bytes = {});
  // Whether its link is up: it may have broken before link_lost() says so.
  [[nodiscard]] bool reaches(std::int32_t host) const;
  [[nodiscard]] JobOrigin* origin(std::uint64_t job) const;
  [[nodiscard]] JobPart* part(std::uint64_t job) const;
  // Makes the origin of a job that a tool asks for with this frame.
  void begin(std::uint64_t job, std::shared_ptr<JobDoor> tool, Frame frame);
  // The same of one that a program asks for. Returns the job.
  std::uint64_t spawn(const JobOrigin::Spawner& spawner, std::uint32_t first, const Program& program,
                      const std::vector<HostSlots>& hosts, const SpawnRequest& request);
  void spawn_by_hand(std::uint64_t token, pid_t process, const SpawnRequest& request);
  void spawn_failed(std::int32_t spawner, std::uint64_t token, const std::string& text);
  void spawned_over(std::uint64_t job, std::uint64_t root, const std::string& text);
  void forget_tool(std::uint64_t number);
  void forget_origin(std::uint64_t job);
  void forget_part(std::uint64_t job);

private:
  void deliver(std::int32_t from, const nlohmann::json& message, std::string bytes);
  void look(std::int32_t from, const nlohmann::json& message);
  [[nodiscard]] nlohmann::json answer(std::int32_t from, const nlohmann::json& question);
  [[nodiscard]] nlohmann::json list() const;
  bool kill(std::uint64_t job, std::uint32_t signal);
  bool of_spawns(std::int32_t from, const std::string& kind, const nlohmann::json& message);
  void prepare(std::int32_t from, const nlohmann::json& message, const std::string& bytes);
  [[nodiscard]] ToolSession* tool(const nlohmann::json& message) const; // that asked for what this answers
  void stop_when_empty();

  Loop& loop_;
  protocol::Engine& engine_;
  Peers& peers_;
  Sessions& sessions_;
  Control& control_;
  const RuntimeDir& runtime_dir_;
  const Processes& processes_;
  Cores cores_;
  std::function<void()> stopped_;
  std::map<std::uint64_t, std::unique_ptr<ToolSession>> tools_;
  std::map<std::uint64_t, std::unique_ptr<JobOrigin>> origins_;
  std::map<std::uint64_t, std::unique_ptr<JobPart>> parts_;
  std::map<std::uint64_t, JobCounters> rows_; // of parts
  Spawners spawners_{*this, peers_};
  std::optional<Timer> farewell_;
  std::mt19937_64 ids_; // of jobs, from this kernel's identity
  bool stopping_ = false;
  Joins joins_;
};

} // namespace parc::daemon
