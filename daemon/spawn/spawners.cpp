// SPDX-License-Identifier: BSD-3-Clause
#include "daemon/spawn/spawners.hpp"

#include "daemon/job/job_messages.hpp"
#include "daemon/job/jobs.hpp"
#include "daemon/link/peers.hpp"
#include "system/frames.hpp"

#include <algorithm>
#include <cerrno>
#include <utility>

namespace parc::daemon {
namespace {

constexpr const char* lost_origin = "the host of its parc run was lost";

bool all_differ(const std::vector<EndpointAddress>& all) {
  std::vector<std::pair<std::uint64_t, std::uint64_t>> names;
  for (const EndpointAddress& each : all) names.emplace_back(each.identity, each.number);
  std::ranges::sort(names);
  return std::ranges::adjacent_find(names) == names.end();
}

// As its origin says them: hosts with the number of the first rank there, and the runs of ranks.
std::optional<std::vector<EndpointAddress>> addresses_in(const nlohmann::json& message, std::uint32_t size) {
  const auto texts = message.find("addresses");
  const auto runs = numbers_in(message, "runs", std::size_t{2} * max_ranks);
  if (texts == message.end() || !texts->is_array() || !runs || runs->size() % 2 != 0) return {};
  std::vector<EndpointAddress> next, all;
  for (const auto& text : *texts) {
    if (!text.is_string()) return {};
    auto address = parse_endpoint_address(text.get<std::string>());
    if (!address || address.value().number == protocol::kernel_endpoint) return {};
    next.push_back(std::move(address).value());
  }
  for (std::size_t i = 0; i < runs->size(); i += 2) {
    if ((*runs)[i] >= next.size() || (*runs)[i + 1] > size - all.size()) return {};
    for (std::uint64_t rank = 0; rank < (*runs)[i + 1]; ++rank) {
      EndpointAddress& address = next[(*runs)[i]];
      if (address.number == UINT64_MAX) return {};
      all.push_back(address);
      ++address.number;
    }
  }
  if (all.size() != size || !all_differ(all)) return {};
  return all;
}

} // namespace

void Spawners::ask(const Sessions::Place& place, pid_t process, const SpawnRequest& request,
                   SpawnListener listener) {
  const std::uint64_t token = ++last_token_;
  const JobPart* const part = jobs_.part(place.job);
  const std::int32_t origin = part != nullptr ? part->plan().origin : this_host;
  if (!jobs_.reaches(origin)) return listener.started(error(ECONNRESET, lost_origin));
  spawned_.emplace(token, Spawned{place.endpoint, origin, request.count, std::move(listener)});
  if (part == nullptr) return jobs_.spawn_by_hand(token, process, request);
  jobs_.tell(origin,
             {{"kind", "spawn"},
              {"job", place.job},
              {"host", part->plan().self},
              {"token", token},
              {"count", request.count},
              {"parent", request.parent}},
             texts_of(request));
}

bool Spawners::signal(std::uint64_t job, std::uint32_t rank, int signal) {
  const auto found =
      std::ranges::find(spawned_, job, [](const auto& each) -> std::uint64_t { return each.second.job; });
  if (found == spawned_.end()) return false;
  jobs_.tell(found->second.origin,
             {{"kind", "signal_rank"}, {"job", job}, {"rank", rank}, {"signal", signal}});
  return true;
}

void Spawners::program_killed(std::uint64_t endpoint) {
  for (auto& [token, spawned] : spawned_) {
    if (spawned.endpoint != endpoint) continue;
    spawned.orphaned = true;
    end(spawned);
  }
}

void Spawners::end(const Spawned& spawned) {
  if (spawned.job != 0) jobs_.tell(spawned.origin, {{"kind", "end_spawned"}, {"job", spawned.job}});
}

void Spawners::link_lost(std::uint32_t link) {
  std::vector<SpawnListener> waiting;
  std::erase_if(spawned_, [&](auto& each) {
    if (each.second.origin != static_cast<std::int32_t>(link)) return false;
    if (!each.second.started) waiting.push_back(std::move(each.second.listener));
    return true;
  });
  for (const SpawnListener& each : waiting) each.started(error(ECONNRESET, lost_origin));
}

// Only who was asked says what became of it.
void Spawners::received(std::int32_t from, const std::string& kind, const nlohmann::json& message) {
  const auto found = spawned_.find(number_in(message, "token", UINT64_MAX).value_or(0));
  if (found == spawned_.end() || found->second.origin != from) return;
  Spawned& spawned = found->second;
  if (kind == "spawn_prepared") {
    if (spawned.job == 0) prepared(found->first, spawned, message);
  } else if (kind == "spawn_started") {
    if (!spawned.known) return; // nobody has told it to start them
    if (!std::exchange(spawned.started, true)) spawned.listener.started(success());
    if (spawned.exits >= spawned.size) spawned_.erase(found);
  } else if (kind == "spawn_exit") {
    const auto rank = number_in(message, "rank", spawned.size - 1);
    const auto status = number_in(message, "status", UINT8_MAX);
    if (spawned.job == 0 || !rank || !status) return;
    spawned.listener.exited(static_cast<std::uint32_t>(*rank), static_cast<std::uint32_t>(*status));
    if (++spawned.exits >= spawned.size && spawned.started) spawned_.erase(found);
  } else if (kind == "spawn_failed") {
    const SpawnListener listener = std::move(spawned.listener);
    const bool started = spawned.started;
    spawned_.erase(found);
    if (!started) listener.started(error(ECANCELED, "{}", text_in(message, "text")));
  }
}

void Spawners::prepared(std::uint64_t token, Spawned& spawned, const nlohmann::json& message) {
  const std::uint64_t job = number_in(message, "spawned", UINT64_MAX).value_or(0);
  const auto ready = [this, token, origin = spawned.origin, job](const Result<void>& known) {
    if (const auto asked = spawned_.find(token); known && asked != spawned_.end()) asked->second.known = true;
    jobs_.tell(origin, {{"kind", "spawn_known"}, {"job", job}, {"text", known ? "" : known.error().text}});
  };
  auto addresses = addresses_in(message, spawned.size);
  if (job == 0 || !addresses) return ready(error(EPROTO, "its parts make no sense"));
  spawned.job = job;
  if (spawned.orphaned) return end(spawned);
  spawned.listener.prepared(job, std::move(*addresses), ready);
}

} // namespace parc::daemon
