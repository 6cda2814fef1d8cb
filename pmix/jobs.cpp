// SPDX-License-Identifier: BSD-3-Clause
#include "pmix/jobs.hpp"

#include <algorithm>
#include <numeric>
#include <utility>

namespace parc::pmix {
namespace {

constexpr int gone = -1;

} // namespace

Jobs::Jobs(const Job& own) : own_(own.name) {
  std::vector<int> peers(own.servers.size());
  std::iota(peers.begin(), peers.end(), 0);
  add(own, std::move(peers));
}

void Jobs::add(const Job& job, std::vector<int> peers) {
  known_.emplace(job.name, Known{job, job.server_of_rank(), std::move(peers)});
}

std::vector<Job> Jobs::all() const {
  std::vector<Job> all;
  for (const auto& [name, known] : known_) all.push_back(known.job);
  return all;
}

std::set<int> Jobs::servers() const {
  std::set<int> all;
  for (const auto& [name, known] : known_) all.insert(known.peers.begin(), known.peers.end());
  all.erase(gone);
  return all;
}

std::vector<std::string> Jobs::lost(int peer) {
  std::vector<std::string> names;
  for (auto& [name, known] : known_) {
    if (name == own_) continue;
    std::ranges::replace(known.peers, peer, gone);
    if (std::ranges::all_of(known.peers, [](int each) { return each == gone; })) names.push_back(name);
  }
  for (const std::string& name : names) known_.erase(name);
  return names;
}

std::optional<Members> Jobs::normal(const Members& members) const {
  Members normal;
  std::map<std::string, std::size_t> named; // ranks
  for (const Member& each : members) {
    const auto found = known_.find(each.job);
    if (found == known_.end()) return {};
    const std::size_t size = found->second.server_of_rank.size();
    if (each.rank != Member::all && each.rank >= size) return {};
    if (each.rank == Member::all || ++named[each.job] == size) normal.insert({each.job, Member::all});
  }
  for (const Member& each : members)
    if (!normal.contains({each.job, Member::all})) normal.insert(each);
  return normal;
}

std::set<int> Jobs::servers_of(const Members& members) const {
  std::set<int> servers;
  for (const Member& each : members) {
    const auto found = known_.find(each.job);
    if (found == known_.end()) {
      servers.insert(gone);
    } else if (const Known& known = found->second; each.rank == Member::all) {
      servers.insert(known.peers.begin(), known.peers.end());
    } else {
      servers.insert(known.peers[known.server_of_rank[each.rank]]);
    }
  }
  return servers;
}

std::optional<int> Jobs::server_of(const std::string& job, std::uint32_t rank) const {
  const auto found = known_.find(job);
  if (found == known_.end() || rank >= found->second.server_of_rank.size()) return {};
  const int peer = found->second.peers[found->second.server_of_rank[rank]];
  return peer == gone ? std::nullopt : std::optional(peer);
}

bool Jobs::is_own(const Members& members) const {
  return std::ranges::all_of(members, [this](const Member& each) { return each.job == own_; });
}

} // namespace parc::pmix
