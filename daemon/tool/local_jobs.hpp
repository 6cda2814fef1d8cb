// SPDX-License-Identifier: BSD-3-Clause
// All jobs that this kernel knows, whether a parc run, a program, or nobody started them, as tools ask for
// them; and what other kernels ask about them for tools of theirs is answered here.
#pragma once

#include "control/host_answer.hpp"
#include "daemon/base/loop.hpp"
#include "daemon/base/post.hpp"
#include "system/observe/unfinished.hpp"

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

namespace parc::daemon {

class Jobs;
class Joins;
class Peers;

class LocalJobs {
public:
  LocalJobs(Loop& loop, Post& post, Peers& peers, Jobs& jobs, Joins& joins);

  // Their numbers; and the hosts of one, each with its link (none: not yet reached).
  [[nodiscard]] std::vector<std::uint64_t> known() const;
  [[nodiscard]] std::vector<std::pair<std::string, std::int32_t>> hosts_of(std::uint64_t job) const;

private:
  [[nodiscard]] std::vector<RankState> look(std::uint64_t job) const;
  [[nodiscard]] control::HostAnswer answer(std::int32_t from, const control::HostQuestion& question);
  bool kill(std::uint64_t job, std::uint32_t signal);

  Peers& peers_;
  Jobs& jobs_;
  Joins& joins_;
};

} // namespace parc::daemon
