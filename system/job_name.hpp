// SPDX-License-Identifier: BSD-3-Clause
// The name of a job that programs join, as libparc and every kernel that hears it understand it.
#pragma once

#include <algorithm>
#include <cstddef>
#include <string_view>

namespace parc {

inline constexpr std::size_t longest_job_name = 255, longest_host_name = 255;
inline constexpr std::string_view job_name_rule =
    "a job's name has 1 to 255 printable characters of ASCII, and no blanks";

// What is none of ASCII might change on its way between kernels, which is JSON.
[[nodiscard]] inline bool is_job_name(std::string_view name) {
  return !name.empty() && name.size() <= longest_job_name &&
         std::ranges::none_of(name, [](unsigned char each) { return each <= ' ' || each >= 0x7f; });
}

} // namespace parc
