// SPDX-License-Identifier: BSD-3-Clause
// What runs of a job on this host, told what to do by the job's origin.
//
// A job is a table of addresses: each host makes endpoints for its ranks and says which (`prepared`), and
// hears those of all ranks before the first of its own starts (`start`). Invariant: this goes only when every
// process is dead. A part whose origin is lost ends by itself.
#pragma once

#include "daemon/base/loop.hpp"
#include "daemon/base/post.hpp"
#include "daemon/job/job_plan.hpp"
#include "daemon/job/mpi_server.hpp"
#include "daemon/job/rank.hpp"
#include "protocol/engine.hpp"
#include "system/error.hpp"
#include "system/observe/unfinished.hpp"
#include "system/runtime_dir.hpp"

#include <cassert>
#include <cstdint>
#include <ctime>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace parc::daemon {

class Jobs;
class Peers;
class Sessions;

class JobPart {
public:
  struct Needs { // and outlives none of
    Loop& loop;
    protocol::Engine& engine;
    Peers& peers;
    Sessions& sessions;
    const RuntimeDir& runtime_dir; // of this kernel, as ranks are told
    const Processes& processes;
    Cores& cores;
    Post& post;
    Jobs& jobs;
  };
  JobPart(const Needs& needs, JobPlan plan);
  ~JobPart();

  void prepare();
  // From its origin.
  void heard(const kernel::Start& message);
  void heard(const kernel::Taken& message);
  void heard(const kernel::Input& message);
  void heard(const kernel::Signal& message);
  void heard(const kernel::MpiJob& message);
  void heard(const kernel::End&) { end(); }
  void heard(const kernel::Kill&);
  void heard(const kernel::Finish&);
  void link_lost(std::uint32_t link);
  void abort(std::int32_t rank, int status);
  void departs(std::uint32_t rank);
  void signal(int number);
  [[nodiscard]] bool has(std::uint64_t endpoint) const {
    return endpoint >= first_endpoint_ && endpoint - first_endpoint_ < mine_.size();
  }
  // From inside the engine, which neither changes: one of another host has departed; it left without reading
  // that.
  void peer_departed(const protocol::Address& peer);
  void unread(std::uint64_t endpoint, const protocol::Address& from, const protocol::Outcome& message);
  void shutting_down();

  [[nodiscard]] const JobPlan& plan() const { return plan_; }
  [[nodiscard]] std::vector<std::pair<std::string, std::int32_t>> hosts() const; // none: it is not prepared
  [[nodiscard]] std::vector<RankState> look() const; // what its ranks here have not finished
  [[nodiscard]] std::size_t ranks_here() const { return mine_.size(); }
  [[nodiscard]] const std::string& program_here() const { // the first
    return (programs_.empty() ? plan_.program : programs_.begin()->second).arguments[0];
  }
  [[nodiscard]] bool running() const { return stage_ == Stage::started && all_started(); }
  [[nodiscard]] bool ending() const { return stage_ >= Stage::ending; }
  [[nodiscard]] bool orphaned() const { return stage_ >= Stage::orphaned; }
  [[nodiscard]] std::int64_t since() const { return since_s_; }

  // From its ranks.
  void started();
  void not_started(Rank& rank, const StartReport& why);
  void output(Rank& rank, std::size_t stream, std::string bytes);
  void input_taken(); // more of it
  void died(Rank& rank, RankExit how);
  void ended(Rank& rank);

private:
  enum class Stage : std::uint8_t {
    connecting, // to the other hosts of the job
    prepared,   // its ranks have endpoints
    started,    // its ranks do, one after the other, and run
    ending,     // they have been told to
    orphaned,   // the origin is lost, or has finished with the job: nobody hears of it any more
    gone,       // and its last process has ended
  };
  void enter(Stage next) {
    assert(next > stage_);
    stage_ = next;
  }
  void reached(std::size_t host, Result<std::int32_t> link);
  Result<void> check_host(std::size_t host, std::int32_t link) const;
  void prepared();
  Result<void> make_group(const kernel::Start& start);
  Result<void> make_group_of_servers(const kernel::Start& start);
  Result<void> prepare_for_mpi();
  Result<void> try_to_start_server();
  void start_server();
  void server_ready(std::vector<std::string> variables);
  void server_ended(const std::string& why);
  void spawn(const MpiServer::Spawn& wanted);
  void tell_server(std::string_view line);
  void check_end_of_mpi(const Rank& rank, const RankExit& how);
  void start_next();
  Result<void> start_rank(std::uint32_t local);
  [[nodiscard]] std::string job_variable() const;
  [[nodiscard]] std::vector<std::string> variables(std::uint32_t local) const;
  void give_input(std::string_view bytes, bool end);
  [[nodiscard]] bool all_started() const { return ranks_.size() == mine_.size(); }
  void signal(std::uint64_t rank, int number);
  void give_early_signals(Rank& rank);
  void note(const Rank& rank, RankExit how);
  void end();
  void order_all(); // to end
  void grace_is_over();
  void kill();
  void order(Rank& rank, int signal);
  void orphan();
  void go_when_stopped();
  void go_when_empty();
  void fail(int status, const std::string& text);
  [[nodiscard]] bool prepared_yet() const { return prepared_; } // also when it is ending
  template <class Message> void tell(Message message) {
    if (orphaned()) return;
    message.job = plan_.job;
    message.host = plan_.self;
    needs_.post.send(plan_.origin, std::move(message));
  }
  Rank* find(std::uint64_t number);
  [[nodiscard]] std::uint64_t endpoint_of(const Rank& rank) const;
  [[nodiscard]] bool has_server() const { return plan_.program.mpi && !mine_.empty(); }
  [[nodiscard]] const Program& program_for(std::uint32_t rank) const {
    return programs_.at(plan_.program.app_of(rank));
  }
  [[nodiscard]] std::uint64_t endpoint_of_server() const { return first_endpoint_ + mine_.size(); }

  Needs needs_;
  JobPlan plan_;
  std::map<std::size_t, Program> programs_; // as they are here, those that have ranks here (Program::app_of)
  std::int64_t since_s_ = std::time(nullptr);               // Unix time
  std::string hosts_;                                       // as its ranks are told
  std::vector<std::uint32_t> mine_;                         // ranks of this host
  std::vector<std::size_t> cores_;                          // of those, where they are bound
  std::vector<std::int32_t> links_;                         // to each host, or this_host
  std::size_t unreached_ = 0;                               // hosts
  std::uint64_t first_endpoint_ = UINT64_MAX;               // of its ranks here, from `prepared` on
  std::uint64_t group_ = 0;                                 // in the engine, from `start` on
  std::uint64_t group_of_servers_ = 0;                      // of all hosts, where the program is one of MPI
  std::unique_ptr<MpiServer> server_;                       // of this host, from `start` on
  std::string early_lines_;                                 // for it, before it runs
  std::vector<std::string> mpi_variables_;                  // that ranks have from it
  std::uint32_t forwarded_ = 0;                             // the last signal that came for the job
  std::map<std::uint32_t, std::vector<int>> early_signals_; // to ranks that have not started, each once
  bool stopping_ = false;                                   // its kernel does
  Stage stage_ = Stage::connecting;
  bool prepared_ = false;
  std::vector<pid_t> killed_; // of its processes
  struct {
    std::set<std::uint32_t> all;
    std::vector<std::uint64_t> untold; // to the origin
  } known_departures_;                 // of ranks of other hosts
  std::uint64_t unread_ = 0;           // messages; the first of them:
  struct Unread {
    std::uint32_t rank;
    protocol::Address from;
    std::int32_t tag;
    std::uint64_t bytes;
  };
  std::vector<Unread> unread_messages_;
  std::size_t run_ = 0;                      // of its ranks: those whose programs have begun
  std::vector<std::unique_ptr<Rank>> ranks_; // those started, in the order of mine_
  struct Input {                             // of its ranks that read what `parc run` does
    std::string waiting;                     // until all are started
    bool ended = false;
    std::uint64_t given = 0, told = 0; // bytes, and those that the origin knows to be taken
  } input_;
  Timer start_timer_;                                                 // one process a turn
  Timer grace_timer_;                                                 // from SIGTERM to SIGKILL
  std::shared_ptr<JobPart*> self_ = std::make_shared<JobPart*>(this); // for links that come after it
};

} // namespace parc::daemon
