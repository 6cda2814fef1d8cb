// SPDX-License-Identifier: BSD-3-Clause
// How parc status and parc dump show what ranks have not finished.
#pragma once

#include "system/observe/unfinished.hpp"
#include "tools/parc/screen/table.hpp"

#include <string>
#include <string_view>
#include <vector>

namespace parc::tools {

struct ShownRank {
  std::string job; // where more than one is shown
  RankState rank;
};

// "waits" in libparc, "runs", or "not joined".
[[nodiscard]] std::string_view doing(const RankState& rank);

// A row for each operation.
[[nodiscard]] Table unfinished_table(const std::vector<ShownRank>& ranks);

// The same for what stands: messages and operations that wait until somebody else goes on.
[[nodiscard]] Table backlog_table(const std::vector<ShownRank>& ranks);

// Waits for something that has taken so long that somebody should look.
[[nodiscard]] bool waits_long(const RankState& rank);

[[nodiscard]] std::string operation_text(const Unfinished& operation); // "read from 3"

} // namespace parc::tools
