// SPDX-License-Identifier: BSD-3-Clause
// Where to dial a host: its name is looked up, or the tunnel that leads there is opened.
#pragma once

#include "daemon/link/resolver.hpp"
#include "daemon/settings/config.hpp"

#include <chrono>

namespace parc::daemon {

// Ways to other hosts that somebody else carries. The near end of each is a Unix socket of this user's, which
// whoever carries it removes when it ends: that a dial finds nothing there says nothing of the kernel behind.
class Tunnels {
public:
  virtual ~Tunnels() = default;
  // `answer` is called once, with the near end of one that is open, or why there is none; perhaps before this
  // returns.
  virtual void open(const SshAddress& to, Resolver::Answer answer) = 0;
  // That with this near end, once more where it has ended meanwhile. ENOENT: there never was one.
  virtual void reopen(const Address& near, Resolver::Answer answer) = 0;
  virtual void renew(const Address& near) = 0; // it hangs
  // What its far end has just said of a connection that ended there; empty: nothing.
  [[nodiscard]] virtual std::string why_refused(const SshAddress& to) const = 0;
};

class Locator {
public:
  // `tunnels`: none: there are no such hosts.
  Locator(Loop& loop, Tunnels* tunnels) : resolver_(loop), tunnels_(tunnels) {}
  // As Resolver::resolve(); for a tunnel there is as much time as that takes itself.
  void find(const HostAddress& host, std::chrono::seconds patience, Resolver::Answer answer);
  void reopen(const Address& near, Resolver::Answer answer);
  void renew(const Address& near);
  // Why a dial of that host ended, where a tunnel knows more than who dialed.
  [[nodiscard]] std::string why_ended(const HostAddress& host) const;

private:
  Resolver resolver_;
  Tunnels* tunnels_;
};

} // namespace parc::daemon
