// SPDX-License-Identifier: BSD-3-Clause
// The tunnels of a kernel, one to each host that is reached through ssh. They stay as long as the kernel
// does.
#pragma once

#include "daemon/ssh/ssh_tunnel.hpp"
#include "system/runtime_dir.hpp"

#include <map>
#include <memory>

namespace parc::daemon {

class SshTunnels final : public Tunnels {
public:
  // All outlive it.
  SshTunnels(Loop& loop, const Processes& processes, const Config& config, const RuntimeDir& dir)
      : loop_(loop), processes_(processes), config_(config), dir_(dir) {}

  void open(const SshAddress& to, Resolver::Answer answer) override;
  void reopen(const Address& near, Resolver::Answer answer) override;
  void renew(const Address& near) override;
  std::string why_refused(const SshAddress& to) const override;

private:
  Loop& loop_;
  const Processes& processes_;
  const Config& config_;
  const RuntimeDir& dir_;
  [[nodiscard]] SshTunnel* at(const Address& near) const;

  std::map<SshAddress, std::unique_ptr<SshTunnel>> all_;
};

} // namespace parc::daemon
