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

void SshTunnels::reopen(const Address& near, Resolver::Answer answer) {
  const auto found = std::ranges::find_if(
      all_, [path = near.host()](const auto& each) { return each.second->near() == path; });
  if (found == all_.end()) return answer(error(ENOENT, "there is no tunnel at {}", near.host()));
  found->second->open(std::move(answer));
}

std::string SshTunnels::why_refused(const SshAddress& to) const {
  const auto tunnel = all_.find(to);
  return tunnel == all_.end() ? std::string() : tunnel->second->why_refused();
}

} // namespace parc::daemon
