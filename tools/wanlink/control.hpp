// SPDX-License-Identifier: BSD-3-Clause
// How `wanlink set`, `up`, `down` and `status` talk to the relay: one JSON request and one JSON answer over a
// SOCK_SEQPACKET connection.
//   {"do": "set", "from": A, "to": B, "forth": Change, "back": Change}
//   {"do": "up" or "down", "from": A, "to": B, "one_way": bool}
//   {"do": "status", "reset": bool}
// The answer is {"error": sentence}, or what was asked for.
#pragma once

#include "system/error.hpp"
#include "system/fd.hpp"
#include "tools/wanlink/emulation.hpp"

#include <functional>
#include <nlohmann/json.hpp>

namespace parc::wanlink {

inline constexpr std::size_t max_control_message = 192 * 1024;

[[nodiscard]] Result<nlohmann::json> ask_relay(const Paths& paths, const nlohmann::json& request);

// The relay's end: a listening socket, and one request and answer on a connection of it.
[[nodiscard]] Result<Fd> listen_for_control(const Paths& paths);
void answer_control(int connection, const std::function<nlohmann::json(const nlohmann::json&)>& handle);

} // namespace parc::wanlink
