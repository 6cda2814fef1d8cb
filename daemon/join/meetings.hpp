// SPDX-License-Identifier: BSD-3-Clause
// Where programs meet that form a job by its name (control/kernel_messages.hpp has the messages). A meeting
// is over when all ranks are there; then their job begins, once each of their kernels has said that it
// reaches all the others, or it does not, and all of them are told why.
//
// Invariant: whoever is in a meeting, or in a job that begins, is told once: to go, or that it is refused.
#pragma once

#include "daemon/base/loop.hpp"
#include "daemon/base/post.hpp"

#include <cstdint>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

namespace parc::daemon {

class Jobs;
class Peers;
struct Config;

class Meetings {
public:
  Meetings(Loop& loop, Peers& peers, Post& post, Jobs& jobs, const Config& config);

  void link_lost(std::int32_t lost);
  [[nodiscard]] std::vector<control::WaitingJob> waiting() const; // for parc ps
  [[nodiscard]] bool none() const { return meetings_.empty() && beginnings_.empty(); }

private:
  struct Member {
    std::int32_t from; // link to its kernel
    std::uint64_t token;
    std::string host, address;
    [[nodiscard]] bool is(std::int32_t link, std::uint64_t its_token) const {
      return from == link && token == its_token;
    }
  };
  struct Meeting {
    std::size_t size = 0;
    std::map<std::uint32_t, Member> members; // those who are there, by rank
    [[nodiscard]] std::string missing() const;
    std::unique_ptr<Timer> patience;
  };
  struct Beginning { // a job all of whose ranks are there
    std::string name;
    std::vector<Member> members;    // by rank
    std::set<std::int32_t> unheard; // links to kernels that have not said that they reach the others
    std::unique_ptr<Timer> patience;
  };

  // Messages of the kernels of programs, perhaps of this one.
  void join(std::int32_t from, const kernel::Join& message);
  void unjoin(std::int32_t from, const kernel::Unjoin& message);
  void formed(std::int32_t from, const kernel::Formed& message);
  static std::string words_of(const std::vector<Member>& members);
  void complete(const std::string& name);
  void out_of_patience(const std::string& name);
  void begin_or_not(std::uint64_t job);
  Beginning forget(std::uint64_t job);
  void dissolve(std::uint64_t job, const std::string& why);
  void tell_refused(std::int32_t to, std::uint64_t token, int code, const std::string& text);
  [[nodiscard]] std::uint32_t beginning_s() const;

  Loop& loop_;
  Peers& peers_;
  Post& post_;
  Jobs& jobs_;
  const Config& config_;
  std::map<std::string, Meeting> meetings_;
  std::map<std::uint64_t, Beginning> beginnings_; // by the number of the job
};

} // namespace parc::daemon
