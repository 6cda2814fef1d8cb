// SPDX-License-Identifier: BSD-3-Clause
// The network device of one emulated host: a TUN device whose other end is the relay. It takes and gives
// large TCP segments (IFF_VNET_HDR), because a system call per wire packet would cost most of a core at 1
// Gbit/s. Invariant: a Device works on the network namespace that the thread was in when it was made.
#pragma once

#include "system/error.hpp"
#include "system/fd.hpp"
#include "tools/wanlink/netlink.hpp"

#include <cstdint>
#include <string>

namespace parc::wanlink {

class Device {
public:
  // Makes wan0 in the present network namespace, with the addresses of `host`, and starts it and lo.
  [[nodiscard]] static Result<Device> make(unsigned host, const std::string& congestion_control);

  // Gives the device to the process at the other end of a Unix socket, as a process that makes a host does.
  [[nodiscard]] Result<void> send_over(int socket) const;
  [[nodiscard]] static Result<Device> receive_from(int socket);

  [[nodiscard]] int fd() const { return tun_.get(); }
  [[nodiscard]] bool has_ipv6() const { return state_.has_ipv6; }

  // The longest segment that the host may send in one piece; at most one packet means no large segments.
  [[nodiscard]] Result<void> limit_segments(std::uint32_t bytes);

private:
  Device() = default;
  [[nodiscard]] Result<void> configure(unsigned host);
  [[nodiscard]] Result<void> set_congestion_control(const std::string& name) const;

  struct State {
    int index = 0;
    bool has_ipv6 = false;
    std::uint32_t segment_limit = 0;
  };
  Fd tun_;
  Netlink netlink_;
  State state_;
};

// What to do when /dev/net/tun cannot be opened, as an error.
[[nodiscard]] Result<Fd> open_tun();

} // namespace parc::wanlink
