// SPDX-License-Identifier: BSD-3-Clause
#include "system/observe/unfinished.hpp"

#include <algorithm>
#include <map>

namespace parc {
namespace {

bool answers(const Unfinished& write, std::uint64_t to, const Unfinished& read) {
  return write.writes && write.peer == static_cast<std::int64_t>(to) && write.context == read.context &&
         (read.tag < 0 || write.tag == read.tag);
}

class Graph {
public:
  explicit Graph(std::span<const RankState> ranks) {
    for (const RankState& rank : ranks) ranks_.emplace(rank.rank, &rank);
  }

  std::vector<std::uint64_t> find() {
    for (const auto& [rank, state] : ranks_)
      if (auto cycle = from(rank); !cycle.empty()) return cycle;
    return {};
  }

private:
  // Depth first, without recursion: a job may have tens of thousands of ranks in one row.
  std::vector<std::uint64_t> from(std::uint64_t start) {
    struct Step {
      std::uint64_t rank;
      std::vector<std::uint64_t> next;
    };
    std::vector<Step> path;
    const auto enter = [&](std::uint64_t rank) {
      seen_[rank] = true;
      path.push_back({rank, waits_for(*ranks_.at(rank))});
    };
    if (seen_[start]) return {};
    enter(start);
    while (!path.empty()) {
      if (path.back().next.empty()) {
        path.pop_back();
        continue;
      }
      const std::uint64_t next = path.back().next.back();
      path.back().next.pop_back();
      const auto before = std::ranges::find(path, next, &Step::rank);
      if (before != path.end()) {
        std::vector<std::uint64_t> cycle;
        for (auto step = before; step != path.end(); ++step) cycle.push_back(step->rank);
        std::rotate(cycle.begin(), std::ranges::min_element(cycle), cycle.end());
        return cycle;
      }
      if (!seen_[next]) enter(next);
    }
    return {};
  }

  [[nodiscard]] std::vector<std::uint64_t> waits_for(const RankState& rank) const {
    std::vector<std::uint64_t> peers;
    if (!rank.resting) return peers;
    const bool reads = std::ranges::any_of(rank.operations, [](const auto& each) { return !each.writes; });
    for (const Unfinished& each : rank.operations) {
      if (each.peer < 0 || each.begun || each.one_sided || (reads && each.writes)) continue;
      const auto found = ranks_.find(static_cast<std::uint64_t>(each.peer));
      if (found == ranks_.end() || !found->second->resting) continue;
      const auto comes = [&](const Unfinished& other) { return answers(other, rank.rank, each); };
      if (!each.writes && std::ranges::any_of(found->second->operations, comes)) continue;
      peers.push_back(found->first);
    }
    std::ranges::sort(peers, std::ranges::greater()); // the lowest is looked at first
    peers.erase(std::unique(peers.begin(), peers.end()), peers.end());
    return peers;
  }

  std::map<std::uint64_t, const RankState*> ranks_;
  std::map<std::uint64_t, bool> seen_;
};

} // namespace

std::vector<std::uint64_t> find_cycle(std::span<const RankState> ranks) {
  return Graph(ranks).find();
}

} // namespace parc
