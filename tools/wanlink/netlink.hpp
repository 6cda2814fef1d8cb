// SPDX-License-Identifier: BSD-3-Clause
// The two things about a network device that only netlink can set. Invariant: a Netlink works on the network
// namespace that the thread was in when it was opened.
#pragma once

#include "system/error.hpp"
#include "system/fd.hpp"

#include <cstdint>
#include <span>
#include <string>

namespace parc::wanlink {

class Netlink {
public:
  Netlink() = default;
  explicit Netlink(Fd socket) : socket_(std::move(socket)) {}
  [[nodiscard]] static Result<Netlink> open();
  [[nodiscard]] int fd() const { return socket_.get(); }

  // The longest TCP segment that the device takes in one piece.
  [[nodiscard]] Result<void> limit_segments(int device, std::uint32_t bytes) const;

  // TCP over the device's route to `network` uses this congestion control. As a property of the route it may
  // be one that the system keeps from unprivileged programs, which the namespace's own default may not.
  [[nodiscard]] Result<void> set_congestion_control(int device, std::span<const std::uint8_t> network,
                                                    int bits, const std::string& name) const;

private:
  Fd socket_;
};

} // namespace parc::wanlink
