// SPDX-License-Identifier: BSD-3-Clause
#include "daemon/spawn/spawners.hpp"

#include "daemon/job/jobs.hpp"
#include "daemon/link/peers.hpp"
#include "daemon/spawn/spawner_process.hpp"

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
std::optional<std::vector<EndpointAddress>> addresses_in(const kernel::SpawnPrepared& message,
                                                         std::uint32_t size) {
  if (message.runs.size() % 2 != 0) return {};
  std::vector<EndpointAddress> next, all;
  for (const std::string& text : message.addresses) {
    auto address = parse_endpoint_address(text);
    if (!address || address.value().number == protocol::kernel_endpoint) return {};
    next.push_back(std::move(address).value());
  }
  for (std::size_t i = 0; i < message.runs.size(); i += 2) {
    const std::uint64_t host = message.runs[i], ranks = message.runs[i + 1];
    if (host >= next.size() || ranks > size - all.size()) return {};
    for (std::uint64_t rank = 0; rank < ranks; ++rank) {
      EndpointAddress& address = next[host];
      if (address.number == UINT64_MAX) return {};
      all.push_back(address);
      ++address.number;
    }
  }
  if (all.size() != size || !all_differ(all)) return {};
  return all;
}

} // namespace

Spawners::Spawners(Post& post, Jobs& jobs) : post_(post), jobs_(jobs) {
  const auto take = [this](std::int32_t from, const auto& message) { heard(from, message); };
  post_.on<kernel::SpawnPrepared>(take);
  post_.on<kernel::SpawnStarted>(take);
  post_.on<kernel::SpawnExit>(take);
  post_.on<kernel::SpawnFailed>(take);
}

void Spawners::ask(const Sessions::Member& member, pid_t process, const SpawnRequest& request,
                   SpawnListener listener) {
  const std::uint64_t token = ++last_token_;
  const JobPart* const part = jobs_.part(member.job);
  const std::int32_t origin = part != nullptr ? part->plan().origin : this_host;
  if (!post_.reaches(origin)) return listener.started(error(ECONNRESET, lost_origin));
  calls_.emplace(token, SpawnCall{member.endpoint, origin, request.ranks(), std::move(listener)});
  if (part == nullptr) return ask_by_hand(token, process, request);
  calls_.at(token).mpi = request.mpi;
  kernel::Spawn message{.job = member.job,
                        .host = part->plan().self,
                        .token = token,
                        .count = request.ranks(),
                        .parent = request.parent,
                        .payload = texts_of(request)};
  if (request.mpi) message.apps = request.numbers();
  post_.send(origin, std::move(message));
}

// No job's origin knows its program: what is spawned gets what it has itself.
void Spawners::ask_by_hand(std::uint64_t token, pid_t process, const SpawnRequest& request) {
  const auto fail = [&](const Error& why) {
    post_.send(this_host, kernel::SpawnFailed{.token = token, .text = why.text});
  };
  const SpawnRequest::App& app = request.apps.front(); // of MPI none is started by hand
  auto program = program_like(process, app.arguments);
  if (!program) return fail(program.error());
  std::vector<HostSlots> hosts{{"", 1}};
  if (!app.hosts.empty()) {
    auto named = parse_hosts(app.hosts);
    if (!named) return fail(named.error());
    hosts = std::move(named).value();
  }
  jobs_.spawn({this_host, token, 0, request.parent}, 0, program.value(),
              {{std::move(hosts)}, {{0, app.ranks}}});
}

bool Spawners::signal(std::uint64_t job, std::uint32_t rank, int signal) {
  const JobPart* const part = jobs_.part(job);
  const auto found =
      std::ranges::find(calls_, job, [](const auto& each) -> std::uint64_t { return each.second.job; });
  if (part == nullptr && found == calls_.end()) return false;
  post_.send(part != nullptr ? part->plan().origin : found->second.origin,
             kernel::SignalRank{.job = job, .rank = rank, .signal = static_cast<std::uint32_t>(signal)});
  return true;
}

void Spawners::program_killed(std::uint64_t endpoint) {
  for (auto& [token, spawned] : calls_) {
    if (spawned.endpoint != endpoint || spawned.mpi) continue;
    spawned.orphaned = true;
    end(spawned);
  }
}

void Spawners::end(const SpawnCall& spawned) {
  if (spawned.job != 0) post_.send(spawned.origin, kernel::EndSpawned{.job = spawned.job});
}

void Spawners::link_lost(std::uint32_t link) {
  std::vector<SpawnListener> waiting;
  std::erase_if(calls_, [&](auto& each) {
    if (each.second.origin != static_cast<std::int32_t>(link)) return false;
    if (!each.second.started) waiting.push_back(std::move(each.second.listener));
    return true;
  });
  for (const SpawnListener& each : waiting) each.started(error(ECONNRESET, lost_origin));
}

// Only who was asked says what became of it.
Spawners::SpawnCall* Spawners::asked(std::int32_t from, std::uint64_t token) {
  const auto found = calls_.find(token);
  return found != calls_.end() && found->second.origin == from ? &found->second : nullptr;
}

void Spawners::heard(std::int32_t from, const kernel::SpawnStarted& message) {
  SpawnCall* const spawned = asked(from, message.token);
  if (spawned == nullptr || !spawned->known) return; // nobody has told it to start them
  if (!std::exchange(spawned->started, true)) spawned->listener.started(success());
  if (spawned->exits >= spawned->size) calls_.erase(message.token);
}

void Spawners::heard(std::int32_t from, const kernel::SpawnExit& message) {
  SpawnCall* const spawned = asked(from, message.token);
  if (spawned == nullptr || spawned->job == 0 || message.rank >= spawned->size) return;
  spawned->listener.exited(message.rank, message.status);
  if (++spawned->exits >= spawned->size && spawned->started) calls_.erase(message.token);
}

void Spawners::heard(std::int32_t from, const kernel::SpawnFailed& message) {
  SpawnCall* const spawned = asked(from, message.token);
  if (spawned == nullptr) return;
  const SpawnListener listener = std::move(spawned->listener);
  const bool started = spawned->started;
  calls_.erase(message.token);
  if (!started) listener.started(error(ECANCELED, "{}", message.text));
}

void Spawners::heard(std::int32_t from, const kernel::SpawnPrepared& message) {
  SpawnCall* const spawned = asked(from, message.token);
  if (spawned == nullptr || spawned->job != 0) return;
  const auto ready = [this, token = message.token, from, job = message.spawned](const Result<void>& known) {
    if (const auto asked = calls_.find(token); known && asked != calls_.end()) asked->second.known = true;
    post_.send(from, kernel::SpawnKnown{.job = job, .text = known ? "" : known.error().text});
  };
  auto addresses = addresses_in(message, spawned->size);
  if (message.spawned == 0 || !addresses) return ready(error(EPROTO, "its parts make no sense"));
  spawned->job = message.spawned;
  if (spawned->orphaned) return end(*spawned);
  spawned->listener.prepared(message.spawned, std::move(*addresses), ready);
}

} // namespace parc::daemon
