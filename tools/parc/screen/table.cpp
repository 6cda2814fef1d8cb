// SPDX-License-Identifier: BSD-3-Clause
#include "tools/parc/screen/table.hpp"

#include "system/columns.hpp"

#include <algorithm>
#include <array>
#include <ctime>
#include <numeric>

namespace parc::tools {
namespace {

std::size_t width_of(const Table& table, std::size_t column) {
  const Column& titled = table.columns[column];
  std::size_t width = std::max(titled.title.size(), titled.longest);
  for (const Row& row : table.rows) width = std::max(width, row.texts[column].size());
  return width;
}

// The columns that are shown, in their order.
std::vector<std::size_t> fitting(const Table& table, std::size_t room) {
  std::vector<std::size_t> shown(table.columns.size());
  std::iota(shown.begin(), shown.end(), 0U);
  const auto spare = [&](std::size_t column) { return table.columns[column].spare; };
  const auto width = [&] {
    std::size_t sum = shown.size() - 1;
    for (const std::size_t column : shown) sum += width_of(table, column);
    return sum;
  };
  while (!shown.empty() && width() > room) {
    const auto last = std::ranges::max_element(shown, {}, spare);
    if (spare(*last) == 0) break;
    std::erase_if(shown, [&, most = spare(*last)](std::size_t column) { return spare(column) == most; });
  }
  return shown;
}

} // namespace

std::vector<Line> table_lines(const Table& table, const Display& display) {
  if (table.rows.empty()) return {};
  std::vector<Texts> texts(1 + table.rows.size()); // the titles first
  std::vector<bool> names, numbers;
  for (const std::size_t each : fitting(table, display.columns)) {
    const Column& column = table.columns[each];
    texts[0].push_back(std::string(column.longest - std::min(column.longest, column.title.size()), ' ') +
                       column.title);
    for (std::size_t row = 0; row < table.rows.size(); ++row)
      texts[row + 1].push_back(table.rows[row].texts[each]);
    names.push_back(column.name);
    numbers.push_back(column.number);
  }
  const auto least = column_widths({texts[0]});
  auto widths = column_widths(texts);
  std::size_t width = std::accumulate(widths.begin(), widths.end(), widths.size() - 1);
  for (bool cut = display.terminal; cut && width > display.columns;) {
    cut = false;
    for (std::size_t i = 0; i < widths.size(); ++i)
      if (names[i] && widths[i] > least[i] && width > display.columns) --widths[i], --width, cut = true;
  }
  std::vector<Line> lines;
  for (std::size_t row = 0; row < texts.size(); ++row) {
    std::string text = in_columns(texts[row], widths, numbers);
    text.erase(text.find_last_not_of(' ') + 1);
    lines.push_back({std::move(text), row == 0 ? Style::title : table.rows[row - 1].style});
  }
  return lines;
}

void Page::add(const std::string& sentence, Style style) {
  if (!display_.terminal) return lines_.push_back({sentence, style});
  for (std::string& line : wrapped(sentence, display_.columns)) lines_.push_back({std::move(line), style});
}

void Page::add(const Table& table) {
  if (table.rows.empty()) return;
  add_blank();
  for (Line& line : table_lines(table, display_)) lines_.push_back(std::move(line));
}

void print_table(std::vector<Column> columns, std::vector<Row> rows, std::FILE* to) {
  show(table_lines({std::move(columns), std::move(rows)}, display_of(to)), to);
}

std::string local_time(std::uint64_t unix_time) {
  const auto time = static_cast<std::time_t>(unix_time);
  std::tm parts{};
  std::array<char, 32> text{"?"};
  if (localtime_r(&time, &parts) != nullptr) std::strftime(text.data(), text.size(), "%F %T", &parts);
  return text.data();
}

} // namespace parc::tools
