// SPDX-License-Identifier: BSD-3-Clause
#include "daemon/job/job_plan.hpp"

#include "daemon/job/host_words.hpp"
#include "daemon/link/endpoint_address.hpp"
#include "system/frames.hpp"
#include "system/job_name.hpp"

#include <cerrno>

namespace parc::daemon {
namespace {

Error malformed() {
  return error(EPROTO, "the kernel of parc run's host sent a plan of a job that makes no sense");
}

std::optional<std::vector<Run>> decode_runs(const nlohmann::json& message, std::size_t hosts,
                                            std::uint32_t size) {
  const auto numbers = numbers_in(message, "runs", std::size_t{2} * max_ranks);
  if (!numbers || numbers->size() % 2 != 0) return {};
  std::vector<Run> runs;
  std::uint64_t ranks = 0;
  for (std::size_t i = 0; i < numbers->size(); i += 2) {
    if ((*numbers)[i] >= hosts || (*numbers)[i + 1] > max_ranks) return {};
    runs.push_back(
        {static_cast<std::uint32_t>((*numbers)[i]), static_cast<std::uint32_t>((*numbers)[i + 1])});
    ranks += runs.back().ranks;
  }
  if (ranks != size) return {};
  return runs;
}

} // namespace

std::string JobPlan::hosts_in_words() const {
  std::vector<std::string> names;
  for (const Host& host : hosts) names.push_back(host.name);
  return host_words(host_of_rank(), names);
}

std::vector<std::uint32_t> JobPlan::host_of_rank() const {
  std::vector<std::uint32_t> hosts_of_ranks;
  for (const Run& run : runs) hosts_of_ranks.insert(hosts_of_ranks.end(), run.ranks, run.host);
  return hosts_of_ranks;
}

nlohmann::json encode_plan(const JobPlan& plan, std::string& bytes) {
  nlohmann::json message{{"kind", "prepare"},           {"job", plan.job},   {"self", plan.self},
                         {"origin", plan.origin_place}, {"size", plan.size}, {"parent", plan.parent}};
  auto& hosts = message["hosts"] = nlohmann::json::array();
  auto& identities = message["identities"] = nlohmann::json::array();
  auto& addresses = message["addresses"] = nlohmann::json::array();
  for (const JobPlan::Host& host : plan.hosts) {
    hosts.push_back(host.name);
    identities.push_back(host.identity);
    addresses.push_back(host.address);
  }
  auto& runs = message["runs"] = nlohmann::json::array();
  for (const Run& run : plan.runs) {
    runs.push_back(run.host);
    runs.push_back(run.ranks);
  }
  bytes = encode_program(plan.program, message);
  return message;
}

Result<JobPlan> decode_plan(const nlohmann::json& message, const std::string& bytes, std::int32_t origin) {
  JobPlan plan;
  const auto hosts = message.find("hosts"), addresses = message.find("addresses");
  const auto identities = numbers_in(message, "identities", max_ranks);
  if (hosts == message.end() || !hosts->is_array() || !identities || hosts->size() != identities->size() ||
      addresses == message.end() || !addresses->is_array() || addresses->size() != hosts->size())
    return malformed();
  for (std::size_t i = 0; i < hosts->size(); ++i) {
    if (!(*hosts)[i].is_string() || !(*addresses)[i].is_string() || (*identities)[i] > UINT32_MAX)
      return malformed();
    const std::size_t length = (*hosts)[i].get_ref<const std::string&>().size();
    if (length == 0 || length > longest_host_name) return malformed();
    plan.hosts.push_back({(*hosts)[i].get<std::string>(), static_cast<std::uint32_t>((*identities)[i]),
                          (*addresses)[i].get<std::string>()});
  }
  const auto job = number_in(message, "job", UINT64_MAX);
  const auto self = number_in(message, "self", plan.hosts.size() - 1);
  const auto origin_place = number_in(message, "origin", plan.hosts.size());
  const auto size = number_in(message, "size", max_ranks);
  if (plan.hosts.empty() || !job || *job == 0 || !self || !origin_place || !size || *size == 0)
    return malformed();
  plan.job = *job;
  plan.origin = origin;
  plan.self = *self;
  plan.origin_place = *origin_place;
  plan.size = static_cast<std::uint32_t>(*size);
  auto runs = decode_runs(message, plan.hosts.size(), plan.size);
  if (!runs) return malformed();
  plan.runs = std::move(*runs);
  plan.parent = text_in(message, "parent");
  if (!plan.parent.empty() && !parse_endpoint_address(plan.parent)) return malformed();
  PARC_TRY(program, decode_program(message, bytes));
  plan.program = std::move(program);
  return plan;
}

} // namespace parc::daemon
