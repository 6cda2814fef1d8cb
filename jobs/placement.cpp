// SPDX-License-Identifier: BSD-3-Clause
#include "jobs/placement.hpp"

#include "system/quote.hpp"

#include <algorithm>
#include <cerrno>
#include <charconv>

namespace parc {

// "name", "name:slots", "[v6]", "[v6]:slots"; a name with several colons is an address as it stands.
Result<HostSlots> parse_host(std::string_view text) {
  const auto wrong = [text] {
    return error(EINVAL, "{} names no host; write a host, or host:slots such as a:2", quote(text));
  };
  std::string_view name = text;
  std::string_view slots;
  if (text.starts_with('[')) {
    const auto end = text.find(']');
    if (end == text.npos) return wrong();
    name = text.substr(1, end - 1);
    slots = text.substr(end + 1);
    if (!slots.empty() && !slots.starts_with(':')) return wrong();
  } else if (std::ranges::count(text, ':') == 1) {
    name = text.substr(0, text.find(':'));
    slots = text.substr(name.size());
  }
  if (const auto at = text.find('@'); at != text.npos)
    return error(EINVAL, "{} names a user; parc runs all ranks as the user who calls it: write {}",
                 quote(text), text.substr(at + 1));
  const auto plain = [](char c) { return c > ' ' && c <= '~' && c != '/' && c != '[' && c != ']'; };
  if (name.empty() || name.size() > 255 || name.starts_with('-') || !std::ranges::all_of(name, plain))
    return wrong();
  HostSlots host{std::string(name), 1};
  if (slots.empty()) return host;
  slots.remove_prefix(1);
  const auto [end, failure] = std::from_chars(slots.data(), slots.data() + slots.size(), host.slots);
  if (failure == std::errc::invalid_argument || end != slots.data() + slots.size() || host.slots == 0)
    return error(EINVAL, "{} gives host {} no number of slots from 1 to {}", quote(text), name, max_slots);
  if (failure != std::errc{} || host.slots > max_slots)
    return error(EINVAL,
                 "{} gives host {} {} slots, for as many ranks, and a host has at most {}; a port does not "
                 "belong here but under [hosts] of parcd.toml: {} = \"ADDRESS:{}\"",
                 quote(text), name, slots, max_slots, name, slots);
  return host;
}

void HostList::add(HostSlots host) {
  const auto [place, first] = places_.try_emplace(host.name, hosts_.size());
  if (first) return hosts_.push_back(std::move(host));
  HostSlots& known = hosts_[place->second];
  known.slots = std::min(known.slots + host.slots, max_ranks);
  if (host.place != HostPlace()) known.place = std::move(host.place);
}

Result<std::vector<HostSlots>> parse_hosts(std::string_view text) {
  HostList hosts;
  for (std::size_t begin = 0; begin <= text.size();) {
    const auto end = std::min(text.find(',', begin), text.size());
    PARC_TRY(host, parse_host(text.substr(begin, end - begin)));
    hosts.add(std::move(host));
    begin = end + 1;
  }
  return std::move(hosts).take();
}

namespace {

// Goes round the slots of hosts.
class Round {
public:
  explicit Round(std::span<const HostSlots> hosts) : hosts_(hosts) {}

  std::vector<Run> next(std::uint32_t ranks) {
    std::vector<Run> runs;
    while (ranks != 0) {
      const std::uint32_t taken = std::min(hosts_[host_].slots - used_, ranks);
      if (!runs.empty() && runs.back().host == host_)
        runs.back().ranks += taken;
      else
        runs.push_back({host_, taken});
      ranks -= taken;
      used_ += taken;
      if (used_ != hosts_[host_].slots) continue;
      used_ = 0;
      host_ = (host_ + 1) % static_cast<std::uint32_t>(hosts_.size());
    }
    return runs;
  }

private:
  std::span<const HostSlots> hosts_;
  std::uint32_t host_ = 0, used_ = 0; // its slots
};

} // namespace

Placement place_all(const RanksOfApps& all, std::vector<HostSlots> hosts) {
  Placement placement{.hosts = std::move(hosts), .runs = {}};
  std::unordered_map<std::string, std::uint32_t> places; // by name
  for (const HostSlots& host : placement.hosts)
    places.try_emplace(host.name, static_cast<std::uint32_t>(places.size()));
  std::vector<Round> rounds(all.lists.begin(), all.lists.end());
  for (const RanksOnHosts& each : all.ranks)
    for (const Run& run : rounds[each.list].next(each.ranks)) {
      const HostSlots& host = all.lists[each.list][run.host];
      const auto [place, first] =
          places.try_emplace(host.name, static_cast<std::uint32_t>(placement.hosts.size()));
      if (first) placement.hosts.push_back(host);
      placement.runs.push_back({place->second, run.ranks});
    }
  return placement;
}

} // namespace parc
