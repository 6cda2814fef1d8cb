// SPDX-License-Identifier: BSD-3-Clause
// A job as the kernel of its `parc run` sees it: asked for by a tool, planned, prepared on every host,
// started when all are ready, and over when every rank has ended. It alone decides the exit status.
//
// Whatever goes wrong takes one way: a verdict, "end" to all hosts, and the wait for what is left. A verdict
// is final when it is about the job (a host lost, a program not found, parc_abort, a time-out). Otherwise the
// status is that of the failed rank that departed first (Departures), for the failures of others follow from
// it.
#pragma once

#include "daemon/base/loop.hpp"
#include "daemon/base/post.hpp"
#include "daemon/job/departures.hpp"
#include "daemon/job/job_client.hpp"
#include "daemon/job/job_plan.hpp"
#include "daemon/job/rank.hpp"
#include "protocol/engine.hpp"
#include "system/error.hpp"

#include <algorithm>
#include <array>
#include <cassert>
#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

namespace parc::daemon {

class Jobs;
class Peers;
struct SpawnRequest;

class JobOrigin {
public:
  struct Spawner {         // a program that has asked for this job, in place of a parc run
    std::int32_t link;     // to its kernel
    std::uint64_t token;   // of that kernel, for this
    std::uint64_t root;    // the job that it belongs to; 0: it was started by hand
    std::string address;   // endpoint_address.hpp
    bool answered = false; // that it runs, or does not
  };
  // `spawner`: none where a tool asks for it.
  JobOrigin(Loop& loop, const protocol::Engine& engine, Peers& peers, Post& post, Jobs& jobs,
            std::uint64_t id, std::shared_ptr<JobClient> client, std::optional<Spawner> spawner);

  // From who asks for it: that first.
  void begin(const tool::Run& run);
  void asked(const tool::Input& input);
  void asked(const tool::Signal& signal);
  void asked(const tool::Kill& kill);
  void asked(const tool::TimedOut&);
  void refuse(const Error& why); // it has asked for what makes no sense
  void tool_gone();
  [[nodiscard]] bool over() const { return stage_ == Stage::over; }

  template <class Message> void received(std::int32_t from, Message message) { // from a part
    if (Host* const host = host_at(from, message.host)) heard(*host, std::move(message));
  }
  void link_lost(std::uint32_t link);
  void shutting_down();

  [[nodiscard]] std::size_t held_spawns() const { return spawn_wishes_.size(); }
  // For dumps.
  [[nodiscard]] std::vector<std::pair<std::string, std::int32_t>> hosts() const; // none: no job runs

  bool killed(std::uint32_t signal); // by parc kill, wherever that is; false: there is no job
  void credit(std::uint32_t rank, std::uint64_t bytes); // of output that was taken

  // Jobs that programs spawn (origin_spawns.cpp).
  void spawned_output(std::uint32_t number, std::uint32_t stream, std::string bytes);
  void spawned_over(std::uint64_t job, const std::string& text);
  void spawner_knows(std::int32_t from, const kernel::SpawnKnown& message);
  void spawner_killed(std::int32_t from);
  void signal_rank(std::uint32_t rank, std::uint32_t signal);
  [[nodiscard]] bool runs_mpi() const { return stage_ == Stage::running && plan_.program.mpi; }
  [[nodiscard]] kernel::MpiBegins as_other() const; // both of what runs MPI
  void tell_of(const kernel::MpiBegins& other);

private:
  enum class Stage { asked, connecting, preparing, running, ending, over };
  struct Host {
    enum class Stage : std::uint8_t {
      connecting,
      unreached,
      reached,
      prepared,
      started, // all its ranks run; said of jobs that were spawned
      lost,    // whatever it says
    };
    std::string name;
    HostPlace place = {}; // what its ranks have for themselves
    Stage stage = Stage::connecting;
    std::optional<std::int32_t> link = {}; // or this_host; from `reached` on
    Error why = {};                        // it was not reached
    std::uint64_t bytes_heard = 0;         // over its link, when last looked at
    std::uint64_t endpoint = 0;            // of its first rank
    // A host without ranks is there for what is spawned, to the end.
    std::uint32_t ranks = 0, ranks_over = 0;
    std::uint64_t input_taken = 0; // bytes, by the slowest of its ranks
    std::uint64_t unread = 0; // messages, as the end of its last rank says; a sentence each of the first:
    std::vector<std::string> unread_messages = {};
  };
  struct RankState {
    explicit RankState(std::uint32_t at) : host(at) {}
    // Running also one whose session has ended, and which is on its way out (Departures).
    enum class Stage : std::uint8_t { running, exited, over }; // over: its output too
    [[nodiscard]] bool exited() const { return stage != Stage::running; }
    [[nodiscard]] bool failed() const {
      return exited() && !ordered && (exit.status != 0 || exit.signal != 0);
    }
    [[nodiscard]] std::string ended_how() const;
    std::uint32_t host;
    Stage stage = Stage::running;
    RankExit exit;
    bool ordered = false;      // it exited because it was told to
    std::uint64_t untaken = 0; // bytes of output, on their way to the tool
    std::uint64_t taken = 0;   // not credited yet
  };
  struct SpawnWish {
    std::int32_t from; // link
    kernel::Spawn message;
  };
  struct Verdict {
    int status = 0;
    std::string text;
  };
  void enter(Stage next) {
    assert(next > stage_);
    stage_ = next;
  }

  // From a part, as long as it counts; none: it does not, or is none of it.
  [[nodiscard]] Host* host_at(std::int32_t link, std::uint64_t place);
  [[nodiscard]] RankState* rank_of(const Host& host, std::uint32_t number);
  void heard(Host& host, const kernel::Prepared& message);
  void heard(Host& host, const kernel::Failed& message);
  void heard(Host& host, const kernel::InputTaken& message);
  void heard(Host& host, const kernel::Started& message);
  void heard(Host& host, const kernel::Stopping& message);
  void heard(Host& host, const kernel::Parted& message);
  void heard(Host& host, kernel::Spawn message);
  void heard(Host& host, kernel::Output message);
  void heard(Host& host, const kernel::Departed& message);
  void heard(Host& host, const kernel::Exited& message);
  void heard(Host& host, const kernel::Ended& message);
  void heard(Host& host, const kernel::Abort& message);

  // From who asks for it.
  Result<void> plan(const tool::Run& run);
  void signal(std::uint32_t number);
  void kill_all(); // what was spawned, too
  void input_taken();

  // Towards the start.
  void reached(std::size_t host, Result<std::int32_t> link);
  void tell_unreached();
  void merge_hosts();
  void prepare();
  static void enter(Host& host, Host::Stage next) {
    assert(next > host.stage);
    host.stage = next;
  }
  [[nodiscard]] bool all_are(Host::Stage at_least) const {
    return std::ranges::all_of(hosts_, [at_least](const Host& host) { return host.stage >= at_least; });
  }
  [[nodiscard]] Result<HostPlace> place_of(const tool::Run& run, std::size_t host) const;
  [[nodiscard]] kernel::Prepare plan_for(const Host& host) const;
  [[nodiscard]] bool all_prepared() const { return all_are(Host::Stage::prepared); }
  void start();

  // origin_spawns.cpp
  [[nodiscard]] std::uint32_t add_numbers(std::uint32_t count);
  // That has the rank which parc run knows by this number; the number is then its own.
  [[nodiscard]] JobOrigin* spawned_with(std::uint32_t& number);
  void credit_spawned(std::uint32_t number, std::uint64_t bytes);
  [[nodiscard]] Result<RanksOfApps> places_of(const SpawnRequest& request);
  [[nodiscard]] Program program_of(SpawnRequest request) const;
  void spawn_now(const SpawnWish& wish);
  void grant_wishes();
  void grant_all_wishes(); // also those of what was spawned
  void fail_spawner(const Verdict& verdict);
  void warn_of_spawned(const std::string& text);
  void end_spawned();
  void tell_spawner_prepared();
  void tell_exit(const RankState& rank);

  // Towards the end.
  void end(RankState& rank, RankState::Stage next);
  void give_up(Host& host); // whatever it says later
  [[nodiscard]] bool is_through(const Host& host) const;
  void lose(Host& host);
  void decide(int status, std::string text);
  void end();
  void out_of_patience();
  std::set<std::size_t> heard_of();
  void check_over();
  void conclude();
  [[nodiscard]] Verdict verdict_of_ranks() const;
  [[nodiscard]] std::vector<std::string> warnings() const;
  [[nodiscard]] std::vector<std::array<std::string, 2>> ends() const;

  // Also a host that was given up because it did not answer: it may go on one day, and must hear that it is
  // over.
  template <class Message> void tell(const Host& host, Message message) {
    message.job = id_;
    if (host.link) post_.send(*host.link, std::move(message));
  }
  template <class Message> void tell_all(const Message& message) {
    for (const Host& host : hosts_) tell(host, message);
  }
  [[nodiscard]] bool reads_input(const Host& host) const; // some rank of it

  Loop& loop_;
  const protocol::Engine& engine_;
  Peers& peers_;
  Post& post_;
  Jobs& jobs_;
  std::uint64_t id_;
  Stage stage_ = Stage::asked;
  std::vector<Host> hosts_;
  std::vector<RankState> ranks_;
  std::size_t ranks_over_ = 0;
  JobPlan plan_;
  bool keep_going_ = false; // a rank that fails ends itself alone
  std::optional<Verdict> verdict_;
  Departures departures_;
  std::uint64_t input_given_ = 0, input_taken_ = 0; // bytes, by the tool and by all that read them
  std::uint32_t forwarded_ = 0;                     // the signal that parc run got, or:
  bool by_parc_kill_ = false;
  Timer patience_;             // with hosts that do not answer
  Loop::Time patient_until_{}; // with those that do
  bool leaving_ = false;       // this kernel
  const std::shared_ptr<JobClient> client_;
  std::optional<Spawner> spawner_;
  struct ChildJob { // by one of its ranks, or of those that were spawned
    std::uint64_t job;
    std::uint32_t first, size; // numbers of its ranks, behind our own
  };
  std::vector<ChildJob> child_jobs_;   // that are not over
  std::uint64_t spawned_untaken_ = 0;  // bytes of their output that parc run has not taken yet
  std::deque<SpawnWish> spawn_wishes_; // that wait until it has: each is a call that blocks
  std::vector<std::string> spawned_warnings_;
  std::uint32_t next_number_ = 0;
  std::size_t next_host_ = 0;
};

} // namespace parc::daemon
