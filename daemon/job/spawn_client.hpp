// SPDX-License-Identifier: BSD-3-Clause
// Where a job that a program has spawned says what `parc run` would hear: its output goes to the job that it
// belongs to, under numbers behind those of that job's own ranks, and so does its end. A job that a program
// started by hand has spawned belongs to none: what it prints goes into the kernel's log.
#pragma once

#include "daemon/job/job_client.hpp"

#include <map>
#include <string>
#include <utility>

namespace parc::daemon {

class Jobs;

class SpawnClient : public JobClient {
public:
  // `root`: the job that `job` belongs to; 0: none. `first`: the number there of its first rank.
  SpawnClient(Jobs& jobs, std::uint64_t job, std::uint64_t root, std::uint32_t first)
      : jobs_(jobs), job_(job), root_(root), first_(first) {}
  void send(const tool::Unreached&) override {} // which nobody reads
  void send(const tool::InputTaken&) override {}
  void send(const tool::Done& message) override;
  void send_output(std::uint32_t rank, std::uint32_t stream, std::string bytes) override;
  [[nodiscard]] bool open() const override { return true; } // as long as there is a kernel

private:
  void log(std::uint32_t rank, std::uint32_t stream, std::string_view bytes);

  Jobs& jobs_;
  std::uint64_t job_, root_;
  std::uint32_t first_;
  std::map<std::pair<std::uint32_t, std::uint32_t>, std::string> lines_; // begun, for the log
};

} // namespace parc::daemon
