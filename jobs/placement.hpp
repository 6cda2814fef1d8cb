// SPDX-License-Identifier: BSD-3-Clause
// Which rank of a job runs on which host: slots of the hosts in the order they were named, and round again
// when there are more ranks than slots.
#pragma once

#include "jobs/host_place.hpp"
#include "system/error.hpp"

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

namespace parc {

inline constexpr std::uint32_t max_ranks = 65536;
inline constexpr std::uint32_t max_slots = 4096; // that "host:N" may give: a larger N was meant as a port

struct HostSlots {
  std::string name;
  std::uint32_t slots = 1;
  HostPlace place = {};
  bool operator==(const HostSlots&) const = default;
};

// A run of consecutive ranks on one host.
struct Run {
  std::uint32_t host = 0; // index in the list of hosts
  std::uint32_t ranks = 0;
  bool operator==(const Run&) const = default;
};

// One host: "a", "a:2" (with two slots), "[::1]:4".
[[nodiscard]] Result<HostSlots> parse_host(std::string_view text);
// Hosts in the order in which they are named. One that is named twice has the slots of both.
class HostList {
public:
  void add(HostSlots host);
  [[nodiscard]] bool empty() const { return hosts_.empty(); }
  [[nodiscard]] std::vector<HostSlots> take() && { return std::move(hosts_); }

private:
  std::vector<HostSlots> hosts_;
  std::unordered_map<std::string, std::size_t> places_; // indices in hosts_, by name
};
// A list of hosts: "a:2,b,[::1]:4".
[[nodiscard]] Result<std::vector<HostSlots>> parse_hosts(std::string_view text);

// Some ranks of a job, in the order of all, and on which of its lists of hosts they may be.
struct RanksOnHosts {
  std::size_t list = 0;
  std::uint32_t ranks = 0;
};
struct RanksOfApps {
  std::vector<std::vector<HostSlots>> lists;
  std::vector<RanksOnHosts> ranks;
};
struct Placement {
  std::vector<HostSlots> hosts;
  std::vector<Run> runs;
};
// All of them: those of one list go on where the last such ones ended. Behind `hosts` there are those that
// only the lists have, in the order of their first ranks. No list is empty, and each host has a slot.
[[nodiscard]] Placement place_all(const RanksOfApps& all, std::vector<HostSlots> hosts = {});

} // namespace parc
