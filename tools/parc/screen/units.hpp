// SPDX-License-Identifier: BSD-3-Clause
// Numbers as texts that tables have room for: three or four digits, and their unit.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace parc::tools {

[[nodiscard]] std::string bytes_text(std::uint64_t number);  // "1.2 MiB", at most 8
[[nodiscard]] std::string count_text(std::uint64_t number);  // "999999", "1.2 M", at most 6
[[nodiscard]] std::string age_text(std::uint64_t ms);        // "1.2 s", at most 7
[[nodiscard]] std::string round_trip_text(std::uint64_t us); // "0.123 ms", at most 8
// "ssh", "direct, plain", "direct, 4 streams"
[[nodiscard]] std::string way_text(std::string_view way, bool encrypted, std::uint64_t streams = 1);
[[nodiscard]] std::string duration_text(std::uint64_t seconds); // "23 h 59 min", at most 12

} // namespace parc::tools
