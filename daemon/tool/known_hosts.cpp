// SPDX-License-Identifier: BSD-3-Clause
#include "daemon/tool/known_hosts.hpp"

#include <algorithm>

namespace parc::daemon {
namespace {

bool on_loopback(const EndpointAddress& address) {
  return !address.hosts.empty() && is_loopback(address.hosts.front());
}

} // namespace

bool is_host_name(const std::string& name) {
  return !name.empty() && name.size() <= control::longest_host &&
         std::ranges::none_of(name, [](unsigned char each) { return each <= ' ' || each == 0x7f; });
}

// One that is reached over loopback is on this machine, and so is who may be told that.
ToldHosts hosts_to_tell(const Peers& peers, std::int32_t to) {
  const bool far = !on_loopback(peers.describe({to, protocol::kernel_endpoint}));
  ToldHosts hosts;
  for (const auto& [name, link, address] : peers.linked())
    if (hosts.size() < control::HostQuestion::most_told && link != to && address.port != 0 &&
        !(far && on_loopback(address)))
      hosts.push_back({name, to_text(address)});
  return hosts;
}

void learn_hosts(Peers& peers, std::int32_t from, const ToldHosts& told) {
  if (from == this_host) return;
  std::vector<Peers::NamedKernel> others;
  for (const auto& [name, text] : told) {
    auto address = parse_endpoint_address(text);
    if (is_host_name(name) && address)
      others.push_back({.name = name, .address = std::move(address).value()});
  }
  peers.learn(from, others);
}

} // namespace parc::daemon
