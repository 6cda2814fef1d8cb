// SPDX-License-Identifier: BSD-3-Clause
// The emulated network: host number i (from 1) is 10.77.0.i and fd77::i.
#pragma once

#include <array>
#include <cstdint>
#include <fmt/format.h>
#include <string>

namespace parc::wanlink {

inline constexpr std::array<std::uint8_t, 3> ipv4_prefix{10, 77, 0};
inline constexpr std::array<std::uint8_t, 15> ipv6_prefix{0xfd, 0x77};
inline constexpr int ipv4_prefix_bits = 24;
inline constexpr int ipv6_prefix_bits = 64;
inline constexpr unsigned max_hosts = 16;
inline constexpr int mtu = 1500;

inline std::string ipv4_address(unsigned host) {
  return fmt::format("10.77.0.{}", host);
}
inline std::string ipv6_address(unsigned host) {
  return fmt::format("fd77::{:x}", host);
}

} // namespace parc::wanlink
