// SPDX-License-Identifier: BSD-3-Clause
// How the state of a rank travels (system/observe/unfinished.hpp), and how `parc dump --json` prints it.
#pragma once

#include "control/message.hpp"
#include "system/observe/unfinished.hpp"

namespace parc::control {

template <> struct Codec<RankState> {
  static void put(nlohmann::json& to, const RankState& value);
  static bool take(const nlohmann::json& from, RankState& value, std::uint64_t most);
};

} // namespace parc::control
