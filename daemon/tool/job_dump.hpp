// SPDX-License-Identifier: BSD-3-Clause
// One `parc dump`: asks the kernels of all hosts of a job what its ranks have begun and not finished, and
// hands their answers to the tool as they come.
//
// Invariant: it ends, with whatever hosts have answered by then: those that have not are named.
#pragma once

#include "daemon/base/loop.hpp"
#include "daemon/job/job_door.hpp"
#include "system/error.hpp"

#include <cstdint>
#include <functional>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

namespace parc::daemon {

class Jobs;

class JobDump {
public:
  // `here`: this host's name. `token` names this dump in what kernels say to each other; `over` is called
  // once, last of all.
  JobDump(Loop& loop, const std::string& here, Jobs& jobs, std::uint64_t token, JobDoor& door,
          std::function<void()> over);

  // Of this job, or of the only one here (0). An error where there is no such job; then `over` is not called.
  Result<void> ask(std::uint64_t job);
  void answered(std::int32_t from, const nlohmann::json& message);

private:
  struct Host {
    std::string name;
    std::int32_t link; // or this_host
    bool answered = false;
  };
  Result<std::uint64_t> choose(std::uint64_t job) const;
  void finish();

  const std::string& here_;
  Jobs& jobs_;
  std::uint64_t token_;
  JobDoor& door_;
  std::function<void()> over_;
  std::vector<Host> hosts_;
  Timer patience_;
};

} // namespace parc::daemon
