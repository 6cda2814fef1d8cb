// SPDX-License-Identifier: BSD-3-Clause
// The name that somebody probably meant: for unknown options, settings and commands.
#pragma once

#include <span>
#include <string>
#include <string_view>

namespace parc {

// The candidate with the fewest letters to insert, remove, change or swap; empty when none is near enough to
// be meant.
[[nodiscard]] std::string_view nearest(std::string_view name, std::span<const std::string_view> candidates);

// "; did you mean X?", or nothing.
[[nodiscard]] std::string did_you_mean(std::string_view name, std::span<const std::string_view> candidates);

} // namespace parc
