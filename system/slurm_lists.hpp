// SPDX-License-Identifier: BSD-3-Clause
// Lists as Slurm writes them into a job's environment: "a[1-3,07],b" is a1, a2, a3, a07, b, and "4(x2),3" is
// 4, 4, 3. Invariant: what is made of a list has at most `most_listed` members, and while one
// is made there are no more, however short the list is.
#pragma once

#include "system/error.hpp"

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace parc {

inline constexpr std::size_t most_listed = 65536;

// Errors: EINVAL.
[[nodiscard]] Result<std::vector<std::string>> expand_node_list(std::string_view text);
[[nodiscard]] Result<std::vector<std::uint32_t>> expand_counts(std::string_view text);

} // namespace parc
