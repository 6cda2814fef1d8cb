// SPDX-License-Identifier: BSD-3-Clause
// Programs that other launchers start and that form a job by its name: parc_join, PARC_JOB. They meet at one
// kernel (daemon/join/meetings.hpp), which knows when all are there; each gets its endpoint first, so that a
// message may come before its reader knows of the group. The messages are in control/kernel_messages.hpp.
//
// Nobody owns the processes: who ends is seen to have departed, and the launchers do the rest.
//
// Invariants: a program that waits is known by its socket; when that ends, its endpoint does, too. Of this
// host only who waits here for a job gets into its group, whatever another kernel says.
#pragma once

#include "daemon/base/counters.hpp"
#include "daemon/base/event.hpp"
#include "daemon/base/loop.hpp"
#include "daemon/base/post.hpp"
#include "daemon/join/joined_jobs.hpp"
#include "daemon/join/meetings.hpp"
#include "daemon/link/endpoint_address.hpp"
#include "protocol/engine.hpp"
#include "system/error.hpp"
#include "system/fd.hpp"

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

namespace parc::daemon {

class Jobs;
class Peers;
class Sessions;

class Joins {
public:
  Joins(Loop& loop, protocol::Engine& engine, Peers& peers, Sessions& sessions, Post& post, Jobs& jobs,
        const Config& config);
  ~Joins();

  // Its user is ours. What it wants: a wish in the door's words (control/words/door.hpp), or nonsense.
  void joiner(Fd socket, const std::string& wants);
  void link_lost(std::uint32_t link);
  void stop();
  // Nobody joins one, has joined one, or meets here.
  [[nodiscard]] bool none() const {
    return joiners_.empty() && meetings_.none() && running_.numbers().empty();
  }
  void publish(Counters& counters);
  [[nodiscard]] const JoinedJobs& jobs() const { return running_; }
  [[nodiscard]] std::vector<control::WaitingJob> waiting() const { return meetings_.waiting(); }
  // Each with its link, which may be another one than when the job began.
  [[nodiscard]] std::vector<std::pair<std::string, std::int32_t>> hosts_of(std::uint64_t job) const;
  bool signal(std::uint64_t job, std::uint32_t number); // all its ranks; false: it has none here

private:
  enum class Stage { reaching, meeting, forming, over };
  struct Joiner {
    Fd socket;
    JoinedJobs::Process process; // that waits at its other end
    Event readable;
    Stage stage = Stage::reaching;
    std::string name;
    std::uint32_t rank = 0, size = 0;
    std::int32_t meeting = -1; // link to where they meet, or this_host
    std::uint64_t job = 0;     // its number, once all are there
    std::uint64_t endpoint = 0;
    [[nodiscard]] bool waits_at(std::int32_t link) const { // for what is said there
      return meeting == link && (stage == Stage::meeting || stage == Stage::forming);
    }
  };
  using Place = std::pair<std::int32_t, std::uint64_t>; // where they have met, and the job's number there
  struct Forming {                                      // a job all of whose ranks are there
    Place place;
    std::map<std::uint64_t, std::uint32_t> mine; // ranks by token
    std::vector<EndpointAddress> members;        // by rank
    std::string hosts;                           // as PARC_HOSTS
    std::uint32_t within_s = 0;                  // it should be told to go
    std::map<std::uint64_t, std::int32_t> links; // by the identity of their kernels
    std::size_t unreached = 0;                   // kernels
    std::unique_ptr<Timer> patience;
  };

  // Of programs of this host, by token.
  void disturbed(std::uint64_t token);
  void ask(std::uint64_t token, const std::string& wants);
  void reached(std::uint64_t token, const Result<std::int32_t>& link);
  void refuse(std::uint64_t token, int code, const std::string& text);
  void forget(std::uint64_t token);

  // Of jobs all of whose ranks are there.
  void joined(std::int32_t from, const kernel::Joined& message);
  Result<void> claim(Forming& forming, const std::vector<std::uint64_t>& mine);
  void reach_all(const std::shared_ptr<Forming>& forming);
  void kernel_reached(Forming& forming, std::uint32_t rank, const Result<std::int32_t>& link);
  void go(std::int32_t from, const kernel::Go& message);
  void form(Forming& forming);
  void give_place(const Forming& forming, std::uint64_t token, std::uint64_t group);
  void cannot_begin(Forming& forming, const std::string& why);
  void drop(const Place& place);
  void program_ended(std::uint64_t group, std::uint64_t endpoint);
  [[nodiscard]] JoinedJobs::Job described(const Forming& forming) const;
  void refused(std::int32_t from, const kernel::JoinRefused& message);

  Loop& loop_;
  protocol::Engine& engine_;
  Peers& peers_;
  Sessions& sessions_;
  Post& post_;
  Meetings meetings_;
  std::uint64_t last_token_ = 0;
  std::map<std::uint64_t, Joiner> joiners_;
  std::map<Place, std::shared_ptr<Forming>> formings_;
  JoinedJobs running_{sessions_};
  std::map<std::uint64_t, JobCounters> rows_;                     // by the job's number
  std::shared_ptr<Joins*> self_ = std::make_shared<Joins*>(this); // for answers that come after it
};

} // namespace parc::daemon
