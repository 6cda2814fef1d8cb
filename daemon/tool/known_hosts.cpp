// SPDX-License-Identifier: BSD-3-Clause
#include "daemon/tool/known_hosts.hpp"

#include <algorithm>
#include <nlohmann/json.hpp>

namespace parc::daemon {
namespace {

constexpr std::size_t most_told = 4096; // of one kernel at once
constexpr std::size_t longest_name = 255;

bool is_name(const std::string& name) {
  return !name.empty() && name.size() <= longest_name &&
         std::ranges::none_of(name, [](unsigned char each) { return each <= ' ' || each == 0x7f; });
}

bool on_loopback(const EndpointAddress& address) {
  return !address.hosts.empty() && is_loopback(address.hosts.front());
}

} // namespace

// One that is reached over loopback is on this machine, and so is who may be told that.
nlohmann::json hosts_to_tell(const Peers& peers, std::int32_t to) {
  const bool far = !on_loopback(peers.describe({to, protocol::kernel_endpoint}));
  nlohmann::json hosts = nlohmann::json::array();
  for (const auto& [name, link, address] : peers.linked())
    if (link != to && address.port != 0 && !(far && on_loopback(address)))
      hosts.push_back({name, to_text(address)});
  return hosts;
}

void learn_hosts(Peers& peers, std::int32_t from, const nlohmann::json& told) {
  if (from == this_host || !told.is_array() || told.size() > most_told) return;
  std::vector<Peers::NamedKernel> others;
  for (const auto& each : told) {
    if (!each.is_array() || each.size() != 2 || !each[0].is_string() || !each[1].is_string()) continue;
    auto name = each[0].get<std::string>();
    auto address = parse_endpoint_address(each[1].get<std::string>());
    if (is_name(name) && address)
      others.push_back({.name = std::move(name), .address = std::move(address).value()});
  }
  peers.learn(from, others);
}

} // namespace parc::daemon
