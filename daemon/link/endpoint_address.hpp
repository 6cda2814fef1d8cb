// SPDX-License-Identifier: BSD-3-Clause
// The address of an endpoint as programs hand it on: the identity of its kernel, the endpoint's number there,
// and where that kernel listens: up to six IPv4 addresses, or an IPv6 address and two of IPv4, so that nobody
// has to know its name. As text it has one length and goes into 64 bytes with its end, as libfabric's
// programs need it. A kernel that is started again has another identity: an address never names a later
// program.
#pragma once

#include "system/error.hpp"

#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace parc::daemon {

struct EndpointAddress {
  std::uint64_t identity = 0;
  std::uint64_t number = 0;       // as text, below 2^40
  std::uint32_t name = 0;         // name_tag() of its host: who has that in [hosts] goes there
  std::uint16_t port = 0;         // 0: it listens nowhere
  std::vector<std::string> hosts; // numeric, in the order in which to try them
  bool operator==(const EndpointAddress&) const = default;
};

[[nodiscard]] std::uint32_t name_tag(std::string_view name);

inline constexpr std::size_t endpoint_text = 63; // characters
// Of more addresses than there is room for, the first ones.
[[nodiscard]] std::string to_text(const EndpointAddress& address);
[[nodiscard]] Result<EndpointAddress> parse_endpoint_address(std::string_view text);
// "10.0.0.2 or fd00::2, port 7272 (kernel 5f3a09c2d7e1b846)".
[[nodiscard]] std::string in_words(const EndpointAddress& address);

} // namespace parc::daemon
