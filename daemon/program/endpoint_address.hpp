// SPDX-License-Identifier: BSD-3-Clause
// The address of an endpoint as programs hand it on: "build17:7272/5f3a09c2d7e1b846/12", its host (and the
// port that its kernel listens on), the identity of that kernel, and the endpoint's number there. A kernel
// that is started again has another identity: an address never names a later program.
#pragma once

#include "system/error.hpp"

#include <cstdint>
#include <string>
#include <string_view>

namespace parc::daemon {

struct EndpointAddress {
  std::string host;
  std::uint16_t port = 0; // 0: it listens nowhere
  std::uint64_t identity = 0;
  std::uint64_t number = 0;
  bool operator==(const EndpointAddress&) const = default;
};

[[nodiscard]] std::string to_text(const EndpointAddress& address);
[[nodiscard]] Result<EndpointAddress> parse_endpoint_address(std::string_view text);

} // namespace parc::daemon
