// SPDX-License-Identifier: BSD-3-Clause
// The subcommands of wanlink, each from parsed options to an exit status. main.cpp prints their errors.
#pragma once

#include "control/exit_status.hpp"
#include "system/error.hpp"
#include "system/scheduling.hpp"
#include "tools/wanlink/settings.hpp"

#include <cstdint>
#include <string>
#include <vector>

namespace parc::wanlink {

using Command = std::vector<std::string>;

struct RunOptions {
  std::vector<std::string> hosts;
  Settings settings;
  TwoWayChange change;
  std::string congestion_control = "cubic";
  RealtimePolicy realtime = RealtimePolicy::Auto;
  std::uint64_t seed = 1;
  std::vector<Direction> closed; // to connections that are opened
  Command command;
};

// Emulates the hosts while the command runs; the command's exit status, or 128 + signal.
[[nodiscard]] Result<int> run(const RunOptions& options);

// Becomes the command on the host; returns only on failure.
[[nodiscard]] Result<int> exec(const std::string& host, const Command& command);

// Executes the command in place of the calling process; returns the exit status of a failure, having said
// why.
[[nodiscard]] int execute(const Command& command);

[[nodiscard]] Result<int> set(const std::string& from, const std::string& to, const TwoWayChange& change);
[[nodiscard]] Result<int> set_up(const std::string& from, const std::string& to, bool up, bool one_way);
[[nodiscard]] Result<int> status(bool json, bool reset);

} // namespace parc::wanlink
