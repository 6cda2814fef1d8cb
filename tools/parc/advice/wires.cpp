// SPDX-License-Identifier: BSD-3-Clause
#include "tools/parc/advice/wires.hpp"

#include <algorithm>
#include <limits>

namespace parc::tools {
namespace {

constexpr std::uint64_t long_message = 8 << 10; // bytes that tell of the bandwidth: some fragments
constexpr double any_bandwidth = std::numeric_limits<double>::infinity();

// A tenth of them is less.
double low_of(std::vector<double> values) {
  std::ranges::sort(values);
  return values.empty() ? 0 : values[(values.size() - 1) / 10];
}

struct Coming {
  double begin, end, bytes;
};

// What comes at a time is one burst. Half of all bytes came in bursts of that rate or more: those of a
// connection's first round trips, and those that something else held up, are fewer.
double usual_rate(std::vector<Coming> messages) {
  std::ranges::sort(messages, {}, &Coming::begin);
  std::vector<Coming> bursts;
  for (const Coming& each : messages) {
    if (bursts.empty() || each.begin > bursts.back().end) {
      bursts.push_back(each);
      continue;
    }
    bursts.back().end = std::max(bursts.back().end, each.end);
    bursts.back().bytes += each.bytes;
  }
  std::erase_if(bursts, [](const Coming& burst) { return burst.end <= burst.begin; });
  std::ranges::sort(bursts, std::ranges::greater(),
                    [](const Coming& burst) { return burst.bytes / (burst.end - burst.begin); });
  double left = 0;
  for (const Coming& each : bursts) left += each.bytes / 2;
  for (const Coming& each : bursts)
    if ((left -= each.bytes) <= 0) return each.bytes / (each.end - each.begin);
  return any_bandwidth;
}

} // namespace

model::Wires measure_wires(const std::vector<MatchedMessage>& messages, std::size_t hosts) {
  model::Wires wires(hosts);
  struct Seen {
    std::vector<double> delays;
    std::vector<Coming> coming;
  };
  std::vector<Seen> seen(hosts * hosts), unposted(hosts * hosts);
  for (const MatchedMessage& each : messages) {
    const std::size_t pair = each.from * hosts + each.to;
    // One that was there before its read says nothing of its way.
    (each.posted < each.begun ? seen : unposted)[pair].delays.push_back(each.first - each.begun);
    if (each.bytes >= long_message)
      seen[pair].coming.push_back({each.first, each.last, static_cast<double>(each.bytes)});
  }
  for (std::size_t from = 0; from < hosts; ++from)
    for (std::size_t to = 0; to < hosts; ++to) {
      const std::size_t pair = from * hosts + to, back = to * hosts + from;
      const auto delay = [&](std::size_t of) {
        return low_of(seen[of].delays.empty() ? unposted[of].delays : seen[of].delays);
      };
      model::Wire& wire = wires.between(from, to);
      wire.latency = std::max(0.0, unposted[back].delays.empty() && seen[back].delays.empty()
                                       ? delay(pair)
                                       : (delay(pair) + delay(back)) / 2);
      wire.bandwidth = usual_rate(std::move(seen[pair].coming));
    }
  return wires;
}

} // namespace parc::tools
