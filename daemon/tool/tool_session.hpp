// SPDX-License-Identifier: BSD-3-Clause
// A tool's connection: what the tool asks of this kernel is answered here (JobDump and HostSearch ask others
// for it), and where it asks for a job, all that it says from then on is that job's (JobOrigin).
#pragma once

#include "daemon/base/loop.hpp"
#include "daemon/tool/host_search.hpp"
#include "daemon/tool/job_dump.hpp"
#include "daemon/tool/tool_door.hpp"
#include "system/fd.hpp"

#include <cassert>
#include <cstdint>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>

namespace parc::daemon {

class Jobs;
class Peers;

class ToolSession {
public:
  // `number` names it in what kernels say to each other, and is its job's, where it asks for one.
  ToolSession(Loop& loop, Peers& peers, Jobs& jobs, std::uint64_t number, Fd tool);

  // Answers to what it has asked other kernels.
  void seen(std::int32_t from, const nlohmann::json& message);
  void answered(std::int32_t from, const nlohmann::json& message);
  void shutting_down();

private:
  enum class Stage : std::uint8_t { asked, answering, of_job, over };
  void enter(Stage next) {
    assert(next == Stage::over ? stage_ != Stage::of_job : stage_ == Stage::asked);
    stage_ = next;
  }
  void heard(Frame frame);
  void dump(const Frame& frame);
  void search(const Frame& frame);
  void answer(const nlohmann::json& message);
  void fail(const std::string& why);
  void taken(std::uint32_t rank, std::uint64_t bytes);
  void idle();
  void gone();

  Loop& loop_;
  Peers& peers_;
  Jobs& jobs_;
  const std::uint64_t number_;
  Stage stage_ = Stage::asked;
  std::shared_ptr<ToolDoor> door_; // its job's, too
  std::optional<JobDump> dump_;
  std::optional<HostSearch> search_;
};

} // namespace parc::daemon
