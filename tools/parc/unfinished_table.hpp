// SPDX-License-Identifier: BSD-3-Clause
// How parc status and parc dump show what ranks have not finished.
#pragma once

#include "system/unfinished.hpp"

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

// A blank line and a row for each operation; nothing where there are none.
void print_unfinished(const std::vector<ShownRank>& ranks);

// The same for what stands: messages and operations that wait until somebody else goes on.
void print_backlog(const std::vector<ShownRank>& ranks);

[[nodiscard]] std::string operation_text(const Unfinished& operation); // "read from 3"
[[nodiscard]] std::string age_text(std::uint64_t ms);
[[nodiscard]] std::string bytes_text(std::uint64_t number);

} // namespace parc::tools
