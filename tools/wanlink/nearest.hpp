// SPDX-License-Identifier: BSD-3-Clause
// The known word nearest to one that was mistyped.
#pragma once

#include <string>
#include <vector>

namespace parc::wanlink {

// Empty when none is near enough to be meant.
[[nodiscard]] std::string nearest(const std::string& word, const std::vector<std::string>& known);

} // namespace parc::wanlink
