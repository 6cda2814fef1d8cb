// SPDX-License-Identifier: BSD-3-Clause
#include "daemon/job/job_plan.hpp"

#include "control/words/host_words.hpp"
#include "daemon/link/endpoint_address.hpp"
#include "system/job_name.hpp"

#include <cerrno>

namespace parc::daemon {
namespace {

Error malformed() {
  return error(EPROTO, "the kernel of parc run's host sent a plan of a job that makes no sense");
}

std::optional<std::vector<Run>> decode_runs(const std::vector<std::uint64_t>& numbers, std::size_t hosts,
                                            std::uint32_t size) {
  if (numbers.size() % 2 != 0) return {};
  std::vector<Run> runs;
  std::uint64_t ranks = 0;
  for (std::size_t i = 0; i < numbers.size(); i += 2) {
    if (numbers[i] >= hosts || numbers[i + 1] > max_ranks) return {};
    runs.push_back({static_cast<std::uint32_t>(numbers[i]), static_cast<std::uint32_t>(numbers[i + 1])});
    ranks += runs.back().ranks;
  }
  if (ranks != size) return {};
  return runs;
}

} // namespace

std::string JobPlan::hosts_in_words() const {
  std::vector<std::string> names;
  for (const Host& host : hosts) names.push_back(host.name);
  return control::host_words(host_of_rank(), names);
}

std::vector<std::uint32_t> JobPlan::host_of_rank() const {
  std::vector<std::uint32_t> hosts_of_ranks;
  for (const Run& run : runs) hosts_of_ranks.insert(hosts_of_ranks.end(), run.ranks, run.host);
  return hosts_of_ranks;
}

std::vector<std::size_t> JobPlan::hosts_with_ranks() const {
  std::vector<std::size_t> all;
  for (const Run& run : runs)
    if (run.ranks != 0 && std::ranges::find(all, run.host) == all.end()) all.push_back(run.host);
  return all;
}

bool fits(const Program& program, std::size_t ranks) {
  return program.apps.empty() || program.apps.back().first_rank < ranks;
}

kernel::Prepare encode_plan(const JobPlan& plan) {
  kernel::Prepare message{.job = plan.job,
                          .self = plan.self,
                          .origin = plan.origin_place,
                          .size = plan.size,
                          .parent = plan.parent};
  for (const JobPlan::Host& host : plan.hosts) {
    message.hosts.push_back(host.name);
    message.identities.push_back(host.identity);
    message.addresses.push_back(host.address);
  }
  for (const Run& run : plan.runs) message.runs.insert(message.runs.end(), {run.host, run.ranks});
  message.payload = control::encode_program(plan.program, message.program);
  return message;
}

Result<JobPlan> decode_plan(const kernel::Prepare& message, std::int32_t origin) {
  const std::size_t hosts = message.hosts.size();
  if (hosts == 0 || message.identities.size() != hosts || message.addresses.size() != hosts ||
      message.job == 0 || message.self >= hosts || message.origin > hosts || message.size == 0)
    return malformed();
  JobPlan plan{.job = message.job,
               .origin = origin,
               .self = message.self,
               .origin_place = message.origin,
               .size = message.size,
               .parent = message.parent};
  for (std::size_t i = 0; i < hosts; ++i) {
    const std::string& name = message.hosts[i];
    if (name.empty() || name.size() > longest_host_name) return malformed();
    plan.hosts.push_back({name, message.identities[i], message.addresses[i]});
  }
  auto runs = decode_runs(message.runs, hosts, plan.size);
  if (!runs || (!plan.parent.empty() && !parse_endpoint_address(plan.parent))) return malformed();
  plan.runs = std::move(*runs);
  PARC_TRY(program, control::decode_program(message.program, message.payload));
  plan.program = std::move(program);
  if (!fits(plan.program, plan.size)) return malformed();
  return plan;
}

} // namespace parc::daemon
