// SPDX-License-Identifier: BSD-3-Clause
// Fences, among ranks of one job or of several that are connected, and what a rank has for others. A fence is
// one trip: each server that has ranks in it sends what they contributed to each other one. Invariant: of
// fences of the same ranks all servers number the same one the same, for a rank that is in one begins its
// next one later (libpmix is given no time-out for fences, which would break that).
//
// Threads: that of the messenger.
#pragma once

#include "pmix/jobs.hpp"
#include "pmix/messenger.hpp"

#include <cstdint>
#include <functional>
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <utility>

namespace parc::pmix {

class Exchange {
public:
  using Answer = Messenger::Answer;
  enum class What : std::uint8_t { fence, connect, disconnect }; // libpmix counts each for itself
  // What a rank of this host has for others, once it has it. May answer on any thread.
  using Local = std::function<void(std::uint32_t rank, Answer answer)>;

  Exchange(Messenger& messenger, const Jobs& jobs, Local local);

  // `answer` has the data of all that took part, one behind the other.
  void fence(What what, const Members& members, std::string_view data, Answer answer);
  void modex(const std::string& job, std::uint32_t rank, Answer answer);
  void server_lost(int server); // some fence may wait for it
  void forget(const std::string& job);

private:
  struct Fence {
    std::map<int, std::string> contributions; // of servers, by their numbers
    Answer answer;                            // empty: the ranks here have not begun it
    std::set<int> servers = {};               // that have ranks in it, when these began it
    std::size_t unsent = 0;                   // of this server's contributions
  };
  using Group = std::pair<What, Members>;
  using Name = std::pair<Group, std::uint64_t>; // and the number among those

  void sent(const Name& name);
  void check(const Name& name);
  void end(const Name& name, int status, std::string data);
  void received(int from, std::string_view body);
  void asked(std::string_view body, const Answer& answer);

  Messenger& messenger_;
  const Jobs& jobs_;
  Local local_;
  std::map<Group, std::uint64_t> fences_begun_;
  std::map<Name, Fence> fences_;
};

} // namespace parc::pmix
