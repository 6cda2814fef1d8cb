// SPDX-License-Identifier: BSD-3-Clause
#include "tools/parc/advice/wires.hpp"

#include <algorithm>
#include <limits>

namespace parc::tools {
namespace {

constexpr std::uint64_t long_message = 32 << 10; // bytes that tell of the bandwidth
constexpr double any_bandwidth = std::numeric_limits<double>::infinity();

// A tenth of them is less.
double low_of(std::vector<double> values) {
  std::ranges::sort(values);
  return values.empty() ? 0 : values[(values.size() - 1) / 10];
}

struct Span {
  double begin, end;
};

double covered(std::vector<Span> spans) {
  std::ranges::sort(spans, {}, &Span::begin);
  double sum = 0, until = -std::numeric_limits<double>::infinity();
  for (const Span& each : spans) {
    sum += std::max(0.0, each.end - std::max(each.begin, until));
    until = std::max(until, each.end);
  }
  return sum;
}

} // namespace

model::Wires measure_wires(const std::vector<MatchedMessage>& messages, std::size_t hosts) {
  model::Wires wires(hosts);
  struct Seen {
    std::vector<double> delays;
    std::vector<Span> coming;
    double bytes = 0;
  };
  std::vector<Seen> seen(hosts * hosts), unposted(hosts * hosts);
  for (const MatchedMessage& each : messages) {
    const std::size_t pair = each.from * hosts + each.to;
    // One that was there before its read says nothing of its way.
    (each.posted < each.begun ? seen : unposted)[pair].delays.push_back(each.first - each.begun);
    if (each.bytes < long_message) continue;
    seen[pair].bytes += static_cast<double>(each.bytes);
    seen[pair].coming.push_back({each.first, each.last});
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
      const double time = covered(seen[pair].coming);
      wire.bandwidth = time > 0 ? seen[pair].bytes / time : any_bandwidth;
    }
  return wires;
}

} // namespace parc::tools
