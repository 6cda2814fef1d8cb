// SPDX-License-Identifier: BSD-3-Clause
// Peers' third part: what other kernels are called and where they are, by [hosts], by what somebody has found
// out, and by the links that are up.
//
// Invariant: what another kernel says of a third never goes before [hosts] or a link of this one.
#include "daemon/link/interfaces.hpp"
#include "daemon/link/peers.hpp"
#include "system/identity.hpp"

#include <algorithm>
#include <set>

namespace parc::daemon {
namespace {

constexpr std::size_t most_learned = 4096; // more than there may be links

} // namespace

// This side's ends of the connections that are up.
std::vector<std::string> Peers::in_use() const {
  std::vector<std::string> hosts;
  for (const auto& [identity, session] : sessions_)
    if (const PeerLink* const connection = session->connection())
      if (std::string host = connection->local_host(); std::ranges::find(hosts, host) == hosts.end())
        hosts.push_back(std::move(host));
  return hosts;
}

EndpointAddress Peers::describe(const protocol::Address& address) const {
  if (address.place == protocol::here)
    return {.identity = self_.identity,
            .number = address.number,
            .name = name_tag(config_.name),
            .port = self_.port,
            .hosts =
                listens_.advertised.empty() ? reachable_at(listens_.hosts, in_use()) : listens_.advertised};
  const HostSession* const session = session_at(address.place);
  if (session == nullptr) return {};
  EndpointAddress made{.identity = session->identity().host,
                       .number = address.number,
                       .name = name_tag(session->identity().name),
                       .port = 0,
                       .hosts = {}};
  const HostSession::Way& way = session->way();
  if (const auto& at = way.advertised ? way.advertised : way.address) {
    made.port = at->port();
    made.hosts.push_back(at->host());
  }
  return made;
}

std::vector<std::string> Peers::known() const {
  std::set<std::string> names{config_.name};
  for (const auto& [name, address] : config_.hosts) names.insert(name);
  for (const auto& [name, address] : learned_) names.insert(name);
  for (const auto& [identity, session] : sessions_) names.insert(session->identity().name);
  return {names.begin(), names.end()};
}

const HostSession* Peers::session_at(std::int32_t link) const {
  for (const auto& [identity, session] : sessions_)
    if (static_cast<std::int32_t>(session->link()) == link) return session.get();
  return nullptr;
}

std::string Peers::name_of(std::int32_t link) const {
  const HostSession* const session = session_at(link);
  return session != nullptr ? session->identity().name : link == this_host ? config_.name : std::string();
}

std::uint32_t Peers::rtt_us(std::int32_t link) const {
  const HostSession* const session = session_at(link);
  return session != nullptr ? session->rtt_us() : 0;
}

// It may have been another one under that name.
void Peers::learn(const std::string& host, HostAddress address) {
  if (learned_.size() >= most_learned && !learned_.contains(host)) return;
  learned_.insert_or_assign(host, std::move(address));
  identities_.erase(host);
}

void Peers::learn(std::int32_t from, const std::vector<NamedKernel>& others) {
  const auto note = [this](const std::string& host, const EndpointAddress& told) {
    if (host == config_.name || means_this_host(host) || config_.hosts.contains(host)) return;
    const HostSession* const session = find(told.identity);
    const EndpointAddress at =
        session != nullptr && session->way().address
            ? describe({static_cast<std::int32_t>(session->link()), protocol::kernel_endpoint})
            : told;
    if (told.identity == self_.identity || at.port == 0 || at.hosts.empty()) return;
    learn(host, HostAddress{at.hosts.front(), at.port});
    if (learned_.contains(host)) identities_[host] = told.identity;
  };
  for (const NamedKernel& other : others) note(other.name, other.address);
  if (const HostSession* const session = session_at(from))
    note(session->identity().name, describe({from, protocol::kernel_endpoint}));
}

std::vector<Peers::NamedKernel> Peers::linked() const {
  std::map<std::uint64_t, std::vector<std::string>> names; // that somebody has used here
  for (const auto& [name, address] : learned_)
    if (const auto known = identities_.find(name); known != identities_.end())
      names[known->second].push_back(name);
  std::vector<NamedKernel> all;
  for (const auto& [identity, session] : sessions_) {
    if (session->connection() == nullptr) continue;
    const auto link = static_cast<std::int32_t>(session->link());
    auto& called = names[identity];
    if (called.empty()) called.push_back(session->identity().name);
    for (std::string& name : called)
      all.push_back({std::move(name), link, describe({link, protocol::kernel_endpoint})});
  }
  return all;
}

// A kernel of that name that a link is up to, unless it is yet to be seen whether it is the one.
const HostSession* Peers::session_named(const std::string& host) const {
  const auto carried = [](const HostSession* session) {
    return session != nullptr && session->connection() != nullptr;
  };
  const auto identity = identities_.find(host);
  if (identity != identities_.end() && carried(find(identity->second))) return find(identity->second);
  if (config_.hosts.contains(host) || (learned_.contains(host) && identity == identities_.end()))
    return nullptr;
  const HostSession* only = nullptr;
  for (const auto& [number, session] : sessions_) {
    if (session->identity().name != host || !carried(session.get())) continue;
    if (only != nullptr) return nullptr; // which is meant?
    only = session.get();
  }
  return only;
}

HostAddress Peers::address_of(const std::string& host) const {
  if (const auto learned = learned_.find(host); learned != learned_.end()) return learned->second;
  const auto named = config_.hosts.find(host);
  return named != config_.hosts.end() ? named->second : HostAddress{host, default_port};
}

// A host may have got another address.
void Peers::hosts_changed() {
  learned_.clear();
  identities_.clear();
}

} // namespace parc::daemon
