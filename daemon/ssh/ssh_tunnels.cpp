// SPDX-License-Identifier: BSD-3-Clause
#include "daemon/ssh/ssh_tunnels.hpp"

#include <algorithm>
#include <cerrno>

namespace parc::daemon {

void SshTunnels::open(const SshAddress& to, Resolver::Answer answer) {
  auto& tunnel = all_[to];
  if (!tunnel)
    tunnel = std::make_unique<SshTunnel>(loop_, processes_, to, to.command.empty() ? config_.ssh : to.command,
                                         dir_.tunnel_socket(static_cast<unsigned>(all_.size())));
  tunnel->open(std::move(answer));
}

SshTunnel* SshTunnels::at(const Address& near) const {
  const auto found = std::ranges::find_if(
      all_, [path = near.host()](const auto& each) { return each.second->near() == path; });
  return found == all_.end() ? nullptr : found->second.get();
}

void SshTunnels::reopen(const Address& near, Resolver::Answer answer) {
  if (SshTunnel* const tunnel = at(near)) return tunnel->open(std::move(answer));
  answer(error(ENOENT, "there is no tunnel at {}", near.host()));
}

void SshTunnels::renew(const Address& near) {
  if (SshTunnel* const tunnel = at(near)) tunnel->renew();
}

std::string SshTunnels::why_refused(const SshAddress& to) const {
  const auto tunnel = all_.find(to);
  return tunnel == all_.end() ? std::string() : tunnel->second->why_refused();
}

} // namespace parc::daemon
