// SPDX-License-Identifier: BSD-3-Clause
// What programs have to do with processes that are not theirs: those that they spawn, and signals to ranks.
#include "daemon/job/job_messages.hpp"
#include "daemon/job/jobs.hpp"
#include "daemon/spawn/spawn_door.hpp"
#include "daemon/spawn/spawner_process.hpp"

#include <csignal>

namespace parc::daemon {

std::uint64_t Jobs::spawn(const JobOrigin::Spawner& spawner, std::uint32_t first, const Program& program,
                          const std::vector<HostSlots>& hosts, const SpawnRequest& request) {
  const std::uint64_t job = new_job();
  auto door = std::make_shared<SpawnDoor>(*this, job, spawner.root, first);
  const auto made = origins_.emplace(
      job, std::make_unique<JobOrigin>(loop_, engine_, peers_, *this, job, std::move(door), spawner));
  nlohmann::json message{{"kind", "run"}, {"keep_going", 1}, {"parent", request.parent}};
  std::string bytes = encode_program(program, message);
  auto& names = message["hosts"] = nlohmann::json::array();
  auto& runs = message["runs"] = nlohmann::json::array();
  for (const Run& run : place_ranks(hosts, request.count)) {
    while (names.size() <= run.host) names.push_back(hosts[names.size()].name); // no host without a rank
    runs.push_back(run.host);
    runs.push_back(run.ranks);
  }
  made.first->second->asked({.message = std::move(message), .bytes = std::move(bytes)});
  return job;
}

// No job's origin knows its program: what is spawned gets what it has itself.
void Jobs::spawn_by_hand(std::uint64_t token, pid_t process, const SpawnRequest& request) {
  auto program = program_like(process, request.arguments);
  if (!program) return spawn_failed(this_host, token, program.error().text);
  std::vector<HostSlots> hosts{{"", 1}};
  if (!request.hosts.empty()) {
    auto named = parse_hosts(request.hosts);
    if (!named) return spawn_failed(this_host, token, named.error().text);
    hosts = std::move(named).value();
  }
  spawn({this_host, token, 0}, 0, program.value(), hosts, request);
}

void Jobs::spawn_failed(std::int32_t spawner, std::uint64_t token, const std::string& text) {
  tell(spawner, {{"kind", "spawn_failed"}, {"token", token}, {"text", text}});
}

void Jobs::spawned_over(std::uint64_t job, std::uint64_t root, const std::string& text) {
  loop_.after_step([this, job, root, text] {
    if (JobOrigin* const at = origin(root)) at->spawned_over(job, text);
  });
  forget_origin(job);
}

bool Jobs::signal(std::uint64_t job, std::uint32_t rank, int signal) {
  const JobPart* const at = part(job);
  if (at == nullptr) return spawners_.signal(job, rank, signal);
  tell(at->plan().origin, {{"kind", "signal_rank"}, {"job", job}, {"rank", rank}, {"signal", signal}});
  return true;
}

bool Jobs::of_spawns(std::int32_t from, const std::string& kind, const nlohmann::json& message) {
  JobOrigin* const at = origin(number_in(message, "job", UINT64_MAX).value_or(0));
  if (kind == "spawn_known") {
    if (at != nullptr) at->spawner_knows(from, message);
  } else if (kind == "end_spawned") {
    if (at != nullptr) at->spawner_killed(from);
  } else if (kind == "signal_rank") {
    const auto rank = number_in(message, "rank", max_ranks), signal = number_in(message, "signal", NSIG - 1);
    if (at != nullptr && rank && signal)
      at->signal_rank(static_cast<std::uint32_t>(*rank), static_cast<std::uint32_t>(*signal));
  } else if (kind.starts_with("spawn_")) {
    spawners_.received(from, kind, message);
  } else {
    return false;
  }
  return true;
}

} // namespace parc::daemon
