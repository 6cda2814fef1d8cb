// SPDX-License-Identifier: BSD-3-Clause
// One `parc dump`: asks the kernels of all hosts of a job what its ranks have begun and not finished, and
// hands their answers to the tool as they come. Hosts that have not answered are named.
#pragma once

#include "daemon/tool/inquiry.hpp"
#include "daemon/tool/tool_connection.hpp"
#include "system/error.hpp"

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

namespace parc::daemon {

class LocalJobs;

class JobDump {
public:
  // `here`: this host's name. `over` is called once, last of all.
  JobDump(Loop& loop, Post& post, const std::string& here, const LocalJobs& jobs, std::uint64_t token,
          ToolConnection& connection, std::function<void()> over);

  // Of this job, or of the only one here (0). An error where there is no such job; then `over` is not called.
  Result<void> ask(std::uint64_t job);
  void answered(std::int32_t from, const kernel::Seen& message);

private:
  Result<std::uint64_t> choose(std::uint64_t job) const;
  void finish();

  const std::string& here_;
  const LocalJobs& jobs_;
  ToolConnection& connection_;
  std::function<void()> over_;
  std::vector<std::string> silent_; // hosts
  Inquiry inquiry_;
};

} // namespace parc::daemon
