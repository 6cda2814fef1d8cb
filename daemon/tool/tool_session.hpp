// SPDX-License-Identifier: BSD-3-Clause
// A tool's connection: what the tool asks of this kernel is answered here (JobDump and HostSearch ask others
// for it), and where it asks for a job, all that it says from then on is that job's (JobOrigin).
#pragma once

#include "daemon/base/loop.hpp"
#include "daemon/base/post.hpp"
#include "daemon/tool/host_search.hpp"
#include "daemon/tool/job_dump.hpp"
#include "daemon/tool/tool_connection.hpp"
#include "system/fd.hpp"

#include <cassert>
#include <cstdint>
#include <memory>
#include <optional>

namespace parc::daemon {

class Jobs;
class LocalJobs;
class Peers;
class Tools;

class ToolSession {
public:
  struct Needs { // and outlives none of
    Loop& loop;
    Post& post;
    Peers& peers;
    Jobs& jobs;
    const LocalJobs& local_jobs;
    Tools& tools;
  };
  // `number` names it in what kernels say to each other, and is its job's, where it asks for one.
  ToolSession(const Needs& needs, std::uint64_t number, Fd tool);

  // To what it has asked other kernels.
  void answered(std::int32_t from, const kernel::Seen& message);
  void answered(std::int32_t from, const kernel::Answer& message);
  void shutting_down();

private:
  enum class Stage : std::uint8_t { asked, answering, of_job, over };
  void enter(Stage next) {
    assert(next == Stage::over ? stage_ != Stage::of_job : stage_ == Stage::asked);
    stage_ = next;
  }
  void heard(const control::Frame& frame);
  template <class Message> void take(const control::Frame& frame);
  void heard(const tool::Run& message);
  void heard(const tool::Dump& message);
  void heard(const tool::Search& message);
  void heard(const tool::AskForKey& message);
  template <class Message> void of_job(const Message& message);
  void answer(const tool::Done& message);
  void refuse(const std::string& why);
  void taken(std::uint32_t rank, std::uint64_t bytes);
  void idle();
  void gone();

  Needs needs_;
  const std::uint64_t number_;
  Stage stage_ = Stage::asked;
  std::shared_ptr<ToolConnection> connection_; // its job's, too
  std::optional<JobDump> dump_;
  std::optional<HostSearch> search_;
};

} // namespace parc::daemon
