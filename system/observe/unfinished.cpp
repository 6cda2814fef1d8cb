// SPDX-License-Identifier: BSD-3-Clause
#include "system/observe/unfinished.hpp"

#include "system/frames.hpp"

#include <algorithm>
#include <array>
#include <map>
#include <nlohmann/json.hpp>

namespace parc {
namespace {

using Json = nlohmann::json;

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
        std::ranges::rotate(cycle, std::ranges::min_element(cycle));
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
      if (each.peer < 0 || each.begun || (reads && each.writes)) continue;
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

std::optional<bool> flag_in(const Json& json, const char* key) {
  const auto found = json.find(key);
  if (found == json.end() || !found->is_boolean()) return {};
  return found->get<bool>();
}

// -1 for any.
std::optional<std::int32_t> place_in(const Json& json, const char* key) {
  const auto found = json.find(key);
  if (found == json.end() || !found->is_number_integer()) return {};
  const auto value = found->get<std::int64_t>();
  if (value < -1 || value > INT32_MAX) return {};
  return static_cast<std::int32_t>(value);
}

std::optional<Unfinished> unfinished_from(const Json& json) {
  if (!json.is_object()) return {};
  const auto context = number_in(json, "context", UINT32_MAX), bytes = number_in(json, "bytes", UINT64_MAX),
             in_place = number_in(json, "in_place", UINT64_MAX), age = number_in(json, "age_ms", UINT64_MAX);
  const auto peer = place_in(json, "peer"), tag = place_in(json, "tag");
  const auto writes = flag_in(json, "writes"), probes = flag_in(json, "probes"),
             begun = flag_in(json, "begun");
  if (!context || !bytes || !in_place || !age || !peer || !tag || !writes || !probes || !begun) return {};
  return Unfinished{.peer = *peer,
                    .tag = *tag,
                    .context = static_cast<std::uint32_t>(*context),
                    .bytes = *bytes,
                    .in_place = *in_place,
                    .age_ms = *age,
                    .writes = *writes,
                    .probes = *probes,
                    .begun = *begun};
}

using Backlog = RankState::Backlog;
constexpr std::array backlog_keys{std::pair{"to_neighbours", &Backlog::to_neighbours},
                                  std::pair{"to_neighbours_bytes", &Backlog::to_neighbours_bytes},
                                  std::pair{"from_neighbours", &Backlog::from_neighbours},
                                  std::pair{"from_neighbours_bytes", &Backlog::from_neighbours_bytes},
                                  std::pair{"put_off", &Backlog::put_off},
                                  std::pair{"kernel_held", &Backlog::kernel_held},
                                  std::pair{"kernel_unread", &Backlog::kernel_unread}};

// Only what stands: a dump has many ranks in which nothing does.
Json to_json(const Backlog& backlog) {
  Json json = Json::object();
  for (const auto& [key, member] : backlog_keys)
    if (backlog.*member != 0) json[key] = backlog.*member;
  return json;
}

std::optional<Backlog> backlog_from(const Json& json) {
  if (!json.is_object()) return {};
  Backlog backlog;
  for (const auto& [key, member] : backlog_keys) {
    if (!json.contains(key)) continue;
    const auto number = number_in(json, key, UINT64_MAX);
    if (!number) return {};
    backlog.*member = *number;
  }
  return backlog;
}

} // namespace

Json to_json(const RankState& rank) {
  Json operations = Json::array();
  for (const Unfinished& each : rank.operations)
    operations.push_back({{"peer", each.peer},
                          {"tag", each.tag},
                          {"context", each.context},
                          {"bytes", each.bytes},
                          {"in_place", each.in_place},
                          {"age_ms", each.age_ms},
                          {"writes", each.writes},
                          {"probes", each.probes},
                          {"begun", each.begun}});
  return {{"rank", rank.rank},       {"pid", rank.process},      {"host", rank.host},
          {"program", rank.program}, {"joined", rank.joined},    {"resting", rank.resting},
          {"more", rank.more},       {"unfinished", operations}, {"backlog", to_json(rank.backlog)}};
}

std::optional<RankState> rank_state_from(const Json& json) {
  if (!json.is_object()) return {};
  const auto rank = number_in(json, "rank", UINT32_MAX), process = number_in(json, "pid", INT32_MAX),
             more = number_in(json, "more", UINT64_MAX);
  const auto joined = flag_in(json, "joined"), resting = flag_in(json, "resting");
  const auto operations = json.find("unfinished"), standing = json.find("backlog");
  const auto backlog = standing == json.end() ? std::nullopt : backlog_from(*standing);
  if (!backlog || !rank || !process || !more || !joined || !resting || operations == json.end() ||
      !operations->is_array())
    return {};
  RankState state{.rank = *rank,
                  .process = *process,
                  .host = text_in(json, "host"),
                  .program = text_in(json, "program"),
                  .joined = *joined,
                  .resting = *resting,
                  .operations = {},
                  .more = *more,
                  .backlog = *backlog};
  for (const Json& each : *operations) {
    const auto operation = unfinished_from(each);
    if (!operation) return {};
    state.operations.push_back(*operation);
  }
  return state;
}

std::vector<std::uint64_t> find_cycle(std::span<const RankState> ranks) {
  return Graph(ranks).find();
}

} // namespace parc
