// SPDX-License-Identifier: BSD-3-Clause
// Programs that other launchers start and that form a job by its name: parc_join, PARC_JOB. They meet at one
// kernel, which knows when all are there; each gets its endpoint first, so that a message may come before its
// reader knows of the group.
//
//   kernel of a program     kernel where they meet
//   join            ->                          name, rank, size, and the address of its endpoint
//   unjoin          ->                          it has gone meanwhile
//                   <-      joined              all are there: the addresses of all
//                   <-      join_refused        a PARC_E* and a sentence
//
// Nobody owns the processes: who ends is seen to have departed, and the launchers do the rest.
//
// Invariant: a program that waits is known by its socket; when that ends, its endpoint does, too.
#pragma once

#include "daemon/event.hpp"
#include "daemon/loop.hpp"
#include "daemon/program/endpoint_address.hpp"
#include "protocol/engine.hpp"
#include "system/fd.hpp"

#include <cstdint>
#include <map>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

namespace parc::daemon {

class Jobs;
class Peers;
class Sessions;

class Joins {
public:
  Joins(Loop& loop, protocol::Engine& engine, Peers& peers, Sessions& sessions, Jobs& jobs,
        const std::uint32_t& patience_s);
  ~Joins();

  // Its user is ours. What it wants: name, host to meet at (or empty), rank, size, with a zero behind each.
  void joiner(Fd socket, const std::string& wants);
  // False: it is none of ours.
  bool received(std::int32_t from, const std::string& kind, const nlohmann::json& message,
                const std::string& bytes);
  void link_lost(std::uint32_t link);
  void stop();
  [[nodiscard]] bool none() const { return joiners_.empty() && meetings_.empty(); }

private:
  enum class Stage { reaching, meeting, forming, over };
  struct Joiner {
    Fd socket;
    Event readable;
    Stage stage = Stage::reaching;
    std::string name;
    std::uint32_t rank = 0, size = 0;
    std::int32_t meeting = -1; // link to where they meet, or this_host
    std::uint64_t endpoint = 0;
  };
  struct Member {
    std::int32_t from; // link to its kernel
    std::uint64_t token;
    std::string host, address;
  };
  struct Meeting {
    std::vector<std::optional<Member>> members; // by rank
    std::size_t missing = 0;
    std::unique_ptr<Timer> patience;
  };
  struct Forming { // a job all of whose ranks are there
    std::uint64_t job = 0;
    std::map<std::uint32_t, std::uint64_t> mine; // tokens by rank
    std::vector<EndpointAddress> members;
    std::string hosts;                           // as PARC_HOSTS
    std::map<std::uint64_t, std::int32_t> links; // by the identity of their kernels
    std::size_t unreached = 0;
    std::optional<Error> failure;
  };

  // Of programs of this host, by token.
  void disturbed(std::uint64_t token);
  void ask(std::uint64_t token, const std::string& wants);
  void reached(std::uint64_t token, const Result<std::int32_t>& link);
  void refuse(std::uint64_t token, int code, const std::string& text);
  void forget(std::uint64_t token);
  void reach_all(const std::shared_ptr<Forming>& forming);
  void form(const Forming& forming);

  // Where they meet.
  void join(std::int32_t from, const nlohmann::json& message);
  void unjoin(std::int32_t from, const nlohmann::json& message);
  void complete(const std::string& name);
  void out_of_patience(const std::string& name);
  void tell_refused(std::int32_t to, std::uint64_t token, int code, const std::string& text);
  void joined(std::int32_t from, const nlohmann::json& message, const std::string& bytes);

  Loop& loop_;
  protocol::Engine& engine_;
  Peers& peers_;
  Sessions& sessions_;
  Jobs& jobs_;
  const std::uint32_t& patience_s_;
  std::uint64_t last_token_ = 0;
  std::map<std::uint64_t, Joiner> joiners_;
  std::map<std::string, Meeting> meetings_;
  std::map<std::uint64_t, std::size_t> programs_;                 // that run here, by the group of their job
  std::shared_ptr<Joins*> self_ = std::make_shared<Joins*>(this); // for answers that come after it
};

} // namespace parc::daemon
