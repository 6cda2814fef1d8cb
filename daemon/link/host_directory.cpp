// SPDX-License-Identifier: BSD-3-Clause
#include "daemon/link/host_directory.hpp"

#include "daemon/link/endpoint_address.hpp"
#include "system/identity.hpp"

#include <algorithm>
#include <set>

namespace parc::daemon {
namespace {

constexpr std::size_t most_learned = 4096; // more than there may be links

} // namespace

bool HostDirectory::learn(const std::string& host, HostAddress address) {
  if (learned_.size() >= most_learned && !learned_.contains(host)) return false;
  learned_.insert_or_assign(host, std::move(address));
  identities_.erase(host);
  return true;
}

void HostDirectory::forget() {
  learned_.clear();
  identities_.clear();
}

bool HostDirectory::is_this_host(const std::string& host) const {
  return host == config_.name || means_this_host(host);
}

std::optional<std::string> HostDirectory::configured_as(std::uint32_t tag) const {
  const auto found =
      std::ranges::find(config_.hosts, tag, [](const auto& host) { return name_tag(host.first); });
  return found != config_.hosts.end() ? std::optional(found->first) : std::nullopt;
}

HostAddress HostDirectory::address_of(const std::string& host) const {
  if (const auto learned = learned_.find(host); learned != learned_.end()) return learned->second;
  const auto named = config_.hosts.find(host);
  if (named == config_.hosts.end()) return HostAddress{host, default_port};
  HostAddress where = named->second;
  // The same text serves all hosts: the relay itself, and those that are behind the same one.
  const auto self = config_.hosts.find(config_.name);
  const bool is_neighbour = self != config_.hosts.end() && self->second.via.relay == where.via.relay;
  if (is_neighbour || is_this_host(where.via.relay)) where.via = {};
  return where;
}

SshAddress HostDirectory::configured_ssh(const std::string& host) const {
  const auto named = config_.hosts.find(host);
  return named == config_.hosts.end() ? SshAddress{} : named->second.ssh;
}

std::optional<std::uint64_t> HostDirectory::identity_of(const std::string& host) const {
  const auto found = identities_.find(host);
  return found != identities_.end() ? std::optional(found->second) : std::nullopt;
}

bool HostDirectory::may_dial() const {
  const auto self = config_.hosts.find(config_.name);
  return self == config_.hosts.end() || self->second.dials != Dials::in;
}

bool HostDirectory::may_dial(const std::string& host) const {
  const auto named = config_.hosts.find(host);
  return may_dial() && (named == config_.hosts.end() || named->second.dials != Dials::out);
}

// Of who is not dialed, the name is all that there is to know it by.
bool HostDirectory::is_undecided(const std::string& host) const {
  return (is_configured(host) && may_dial(host)) || (learned_.contains(host) && !identities_.contains(host));
}

std::vector<std::string> HostDirectory::names() const {
  std::set<std::string> names{config_.name};
  for (const auto& [name, address] : config_.hosts) names.insert(name);
  for (const auto& [name, address] : learned_) names.insert(name);
  return {names.begin(), names.end()};
}

std::map<std::uint64_t, std::vector<std::string>> HostDirectory::learned_names() const {
  std::map<std::uint64_t, std::vector<std::string>> names;
  for (const auto& [name, address] : learned_)
    if (const auto known = identities_.find(name); known != identities_.end())
      names[known->second].push_back(name);
  return names;
}

} // namespace parc::daemon
