// SPDX-License-Identifier: BSD-3-Clause
// What people see of the results: the tables, the JSON file, the pictures.
#pragma once

#include "bench/heat/scene.hpp"
#include "system/error.hpp"

namespace parc::heat::demo {

// Every row, and below them what the columns and marks mean.
[[nodiscard]] std::string full_table(const std::vector<Row>& rows);

// The variants side by side at a few cases, what that means, and what it comes to in a sentence.
[[nodiscard]] std::string short_table(const std::vector<Row>& rows);

[[nodiscard]] Result<void> write_json(const std::string& path, const std::vector<Row>& rows,
                                      const nlohmann::json& settings);

// Writes a gnuplot script and runs it.
[[nodiscard]] Result<void> draw(const std::string& script_path, const std::string& script);

// Gain and speedup over granularity for each halo, as in figures 21 to 23: name.svg, beside the gnuplot
// script that draws it.
[[nodiscard]] Result<std::string> draw_gain(const std::string& directory, const std::string& name,
                                            const std::vector<Row>& rows);
// The temperatures that heat --field wrote: name.png.
[[nodiscard]] Result<std::string> draw_field(const std::string& directory, const std::string& name,
                                             const std::string& field, std::size_t columns,
                                             std::size_t points);

} // namespace parc::heat::demo
