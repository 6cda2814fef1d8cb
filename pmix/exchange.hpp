// SPDX-License-Identifier: BSD-3-Clause
// What the PMIx servers of a job tell each other, as messages of parc: each is the rank of one host in a job
// of servers. A fence is one trip: each server that has ranks in it sends what they contributed to each other
// one. Invariant: of fences of the same ranks all servers number the same one the same, for a rank that is in
// one begins its next one later (libpmix is given no time-out for fences, which would break that).
//
// Threads: post() any, everything else that of run().
#pragma once

#include "include/parc/parc.h"
#include "system/error.hpp"

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

namespace parc::pmix {

class Exchange {
public:
  // `status` is of PMIx; the data of all that took part, one behind the other.
  using Answer = std::function<void(int status, std::string data)>;
  // What a rank of this host has for others, once it has it. May answer on any thread.
  using Local = std::function<void(std::uint32_t rank, Answer answer)>;

  // `server_of_rank`: of each rank of the job, by the servers' own numbers.
  Exchange(parc_context* parc, std::vector<std::uint32_t> server_of_rank, Local local);

  // `ranks` empty: all.
  void fence(std::set<std::uint32_t> ranks, std::string_view data, Answer answer);
  void modex(std::uint32_t rank, Answer answer);

  // Has run() do this.
  void post(std::function<void()> action);
  // Until the kernel has gone.
  Result<void> run();

private:
  enum class Kind : std::uint32_t { contribution, request, reply };
  struct Header {
    Kind kind;
    std::uint32_t rank;   // of a request
    std::uint64_t number; // of the fence among those of its ranks, or of the request with who asks
    std::int32_t status;  // of a reply
    std::uint32_t ranks;  // which follow, of a contribution; then the data
  };
  struct Fence {
    std::set<std::uint32_t> servers; // whose contributions have come
    std::string data;
    Answer answer; // empty: the ranks here have not begun it
  };
  using Ranks = std::set<std::uint32_t>;

  [[nodiscard]] std::set<std::uint32_t> servers_of(const Ranks& ranks) const;
  void contribute(const Ranks& ranks, std::uint64_t number, std::uint32_t server, std::string_view data);
  void answer_if_complete(const Ranks& ranks, std::uint64_t number);
  void send(std::uint32_t server, const Header& header, std::string_view body);
  void fail(int code);
  Result<void> look_for_messages();
  Result<void> completed(const parc_completion& completion);
  Result<void> begin_read(const parc_completion& claim);
  void received(std::uint32_t from, std::string_view message);
  void received_contribution(std::uint32_t from, const Header& header, std::string_view body);
  void take_actions();

  parc_context* parc_;
  const std::vector<std::uint32_t> server_of_rank_;
  const std::uint32_t self_;
  Local local_;
  std::map<Ranks, std::uint64_t> fences_begun_;
  std::map<std::pair<Ranks, std::uint64_t>, Fence> fences_;
  std::unordered_map<std::uint64_t, Answer> requests_; // that were sent
  std::uint64_t last_request_ = 0;
  std::unordered_map<parc_op, std::vector<char>> reads_, writes_; // and the messages they are of
  std::optional<Error> failure_; // of a message that could not be sent: somebody would wait for it for ever
  std::mutex mutex_;
  std::vector<std::function<void()>> actions_; // under mutex_
};

} // namespace parc::pmix
