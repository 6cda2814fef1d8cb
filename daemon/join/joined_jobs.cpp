// SPDX-License-Identifier: BSD-3-Clause
#include "daemon/join/joined_jobs.hpp"

#include "daemon/base/counters.hpp"
#include "daemon/program/sessions.hpp"
#include "system/identity.hpp"
#include "system/observe/unfinished.hpp"

#include <algorithm>
#include <ctime>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

namespace parc::daemon {

// ---- Their programs

void JoinedJobs::begin(std::uint64_t group, Job job) {
  running_.emplace(group, Running{std::move(job), static_cast<std::uint64_t>(std::time(nullptr))});
}

bool JoinedJobs::begun(std::uint64_t group) {
  running_.at(group).beginning = false;
  return forget_if_over(group);
}

JoinedJobs::Process JoinedJobs::at_other_end(const Fd& socket) {
  ucred who{};
  socklen_t size = sizeof who;
  if (getsockopt(socket.get(), SOL_SOCKET, SO_PEERCRED, &who, &size) != 0 || who.pid <= 0) return {};
  return {who.pid, Fd(static_cast<int>(syscall(SYS_pidfd_open, who.pid, 0)))};
}

void JoinedJobs::add(std::uint64_t group, std::uint32_t rank, std::uint64_t endpoint, Process process) {
  running_.at(group).programs.push_back({rank, endpoint, std::move(process)});
}

bool JoinedJobs::remove(std::uint64_t group, std::uint64_t endpoint) {
  std::erase_if(running_.at(group).programs,
                [endpoint](const Program& each) { return each.endpoint == endpoint; });
  return forget_if_over(group);
}

bool JoinedJobs::forget_if_over(std::uint64_t group) {
  const auto found = running_.find(group);
  if (found->second.beginning || !found->second.programs.empty()) return false;
  running_.erase(found);
  return true;
}

std::vector<std::uint64_t> JoinedJobs::groups() const {
  std::vector<std::uint64_t> all;
  for (const auto& [group, at] : running_) all.push_back(group);
  return all;
}

// ---- For tools

const JoinedJobs::Running* JoinedJobs::find(std::uint64_t job) const {
  const auto found =
      std::ranges::find(running_, job, [](const auto& each) { return each.second.job.number; });
  return found == running_.end() ? nullptr : &found->second;
}

std::vector<std::uint64_t> JoinedJobs::numbers() const {
  std::vector<std::uint64_t> all;
  for (const auto& [group, at] : running_) all.push_back(at.job.number);
  return all;
}

std::size_t JoinedJobs::ranks_here(std::uint64_t job) const {
  const Running* const at = find(job);
  return at == nullptr ? 0 : at->programs.size();
}

std::vector<JoinedJobs::Host> JoinedJobs::hosts_of(std::uint64_t job) const {
  const Running* const at = find(job);
  return at == nullptr ? std::vector<Host>() : at->job.hosts;
}

std::vector<RankState> JoinedJobs::look(std::uint64_t job, const std::string& here) const {
  std::vector<RankState> all;
  const Running* const at = find(job);
  if (at == nullptr) return all;
  const std::size_t most = unfinished_of_each(at->programs.size());
  for (const Program& program : at->programs) {
    RankState state{.rank = program.rank,
                    .process = static_cast<std::uint64_t>(program.process.id),
                    .host = here,
                    .program = program_of(program.process.id),
                    .operations = {}};
    sessions_.look_at(program.endpoint, most, state);
    all.push_back(std::move(state));
  }
  return all;
}

void JoinedJobs::signal(std::uint64_t job, int number) const {
  const Running* const at = find(job);
  if (at == nullptr) return;
  for (const Program& program : at->programs)
    if (const Fd& handle = program.process.handle)
      (void)syscall(SYS_pidfd_send_signal, handle.get(), number, nullptr, 0);
}

std::vector<control::JobRow> JoinedJobs::list() const {
  std::vector<control::JobRow> jobs;
  for (const auto& [group, at] : running_) {
    if (at.programs.empty()) continue;
    const std::string program = program_of(at.programs.front().process.id);
    jobs.push_back({.job = at.job.number,
                    .program = fmt::format("{} ({})", program.empty() ? "?" : program, at.job.name),
                    .size = at.job.size,
                    .ranks = static_cast<std::uint32_t>(at.programs.size()),
                    .state = std::string(name(JobState::Running)),
                    .since = at.since_s,
                    .origin = at.job.met_at});
  }
  return jobs;
}

} // namespace parc::daemon
