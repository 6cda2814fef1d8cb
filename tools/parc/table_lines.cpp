// SPDX-License-Identifier: BSD-3-Clause
#include "tools/parc/table.hpp"

#include <algorithm>
#include <array>
#include <ctime>
#include <fmt/format.h>

namespace parc::tools {

std::vector<std::string> table_lines(const std::vector<Column>& columns,
                                     const std::vector<std::vector<std::string>>& rows) {
  std::vector<std::size_t> widths;
  for (std::size_t i = 0; i < columns.size(); ++i) {
    widths.push_back(columns[i].title.size());
    for (const auto& row : rows) widths[i] = std::max(widths[i], row[i].size());
  }
  std::vector<std::string> lines;
  const auto add = [&](auto text_of) {
    std::string& line = lines.emplace_back();
    for (std::size_t i = 0; i < columns.size(); ++i) {
      if (i != 0) line += ' ';
      line += columns[i].number ? fmt::format("{:>{}}", text_of(i), widths[i])
                                : fmt::format("{:<{}}", text_of(i), widths[i]);
    }
    line.erase(line.find_last_not_of(' ') + 1);
  };
  add([&](std::size_t i) { return columns[i].title; });
  for (const auto& row : rows) add([&](std::size_t i) { return row[i]; });
  return lines;
}

std::string local_time(std::uint64_t unix_time) {
  const auto time = static_cast<std::time_t>(unix_time);
  std::tm parts{};
  std::array<char, 32> text{"?"};
  if (localtime_r(&time, &parts) != nullptr) std::strftime(text.data(), text.size(), "%F %T", &parts);
  return text.data();
}

} // namespace parc::tools
