// SPDX-License-Identifier: BSD-3-Clause
#include "daemon/job/departures.hpp"

#include <algorithm>
#include <utility>

namespace parc::daemon {

Departures::Departures(std::vector<std::uint32_t> host_of_rank)
    : host_(std::move(host_of_rank)), known_(host_.empty() ? 0 : std::ranges::max(host_) + std::size_t{1}),
      named_(known_.size()), place_(host_.size(), none) {}

void Departures::heard(std::uint32_t rank, std::span<const std::uint64_t> known) {
  if (place_[rank] != none) return;
  std::vector<std::uint32_t>& of_host = known_[host_[rank]];
  std::vector<bool>& named = named_[host_[rank]];
  named.resize(host_.size());
  for (const std::uint64_t other : known) {
    if (other >= host_.size() || host_[other] == host_[rank] || named[other]) continue;
    named[other] = true;
    of_host.push_back(static_cast<std::uint32_t>(other));
  }
  place_[rank] = of_host.size();
  of_host.push_back(rank);
  heard_.push_back(rank);
}

std::optional<std::uint32_t> Departures::first(const Failed& failed) const {
  const auto found = std::ranges::find_if(heard_, failed);
  if (found == heard_.end()) return std::nullopt;
  std::uint32_t rank = *found;
  // Each step goes back in time; hosts that contradict each other end it, too.
  for (std::size_t steps = heard_.size(); steps != 0; --steps) {
    const auto earlier = before(rank, failed);
    if (!earlier) break;
    rank = *earlier;
  }
  return rank;
}

// Through any number of hosts, and of ranks that have not failed.
std::optional<std::uint32_t> Departures::before(std::uint32_t rank, const Failed& failed) const {
  std::vector<std::size_t> looked(known_.size()), until(known_.size());
  std::vector<std::uint32_t> hosts{host_[rank]};
  until[host_[rank]] = place_[rank];
  while (!hosts.empty()) {
    const std::uint32_t host = hosts.back();
    hosts.pop_back();
    for (; looked[host] < until[host]; ++looked[host]) {
      const std::uint32_t other = known_[host][looked[host]];
      if (failed(other)) return other;
      if (place_[other] == none || place_[other] <= until[host_[other]]) continue;
      until[host_[other]] = place_[other];
      hosts.push_back(host_[other]);
    }
  }
  return std::nullopt;
}

} // namespace parc::daemon
