// SPDX-License-Identifier: BSD-3-Clause
// The tools that are connected to this kernel, by the number that names each in what kernels say to each
// other.
#pragma once

#include "daemon/base/loop.hpp"
#include "daemon/base/post.hpp"
#include "daemon/tool/local_jobs.hpp"
#include "daemon/tool/tool_session.hpp"
#include "system/fd.hpp"

#include <cstdint>
#include <functional>
#include <map>
#include <memory>

namespace parc::daemon {

class Tools {
public:
  // `emptied`: called when the last of them has gone.
  Tools(Loop& loop, Post& post, Peers& peers, Jobs& jobs, Joins& joins, std::function<void()> emptied);
  ~Tools();

  void connected(Fd socket); // its user is ours
  [[nodiscard]] bool none() const { return sessions_.empty(); }
  void stop(); // all hear of it

  // For their sessions.
  void forget(std::uint64_t number);

private:
  [[nodiscard]] ToolSession* find(std::uint64_t number) const;

  Loop& loop_;
  Post& post_;
  Peers& peers_;
  Jobs& jobs_;
  LocalJobs local_jobs_;
  std::function<void()> emptied_;
  std::map<std::uint64_t, std::unique_ptr<ToolSession>> sessions_;
};

} // namespace parc::daemon
