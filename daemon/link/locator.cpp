// SPDX-License-Identifier: BSD-3-Clause
#include "daemon/link/locator.hpp"

#include <cerrno>

namespace parc::daemon {

void Locator::find(const HostAddress& host, std::chrono::seconds patience, Resolver::Answer answer) {
  if (!host.via.relay.empty()) return answer(std::vector{relayed_address(0, host.via.host, host.via.relay)});
  if (host.ssh.host.empty()) return resolver_.resolve(host.address, host.port, patience, std::move(answer));
  if (tunnels_ != nullptr) return tunnels_->open(host.ssh, std::move(answer));
  answer(error(EOPNOTSUPP, "this kernel reaches nobody through ssh"));
}

void Locator::reopen(const Address& near, Resolver::Answer answer) {
  if (tunnels_ != nullptr) return tunnels_->reopen(near, std::move(answer));
  answer(std::vector{near}); // whoever made it looks after it
}

void Locator::renew(const Address& near) {
  if (tunnels_ != nullptr) tunnels_->renew(near);
}

std::string Locator::why_ended(const HostAddress& host) const {
  if (host.ssh.host.empty() || tunnels_ == nullptr) return {};
  return tunnels_->why_refused(host.ssh);
}

} // namespace parc::daemon
