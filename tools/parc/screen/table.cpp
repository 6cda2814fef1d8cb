// SPDX-License-Identifier: BSD-3-Clause
#include "tools/parc/screen/table.hpp"

#include <algorithm>
#include <array>
#include <cstdlib>
#include <ctime>
#include <libsmartcols/libsmartcols.h>
#include <memory>
#include <numeric>
#include <string_view>

namespace parc::tools {
namespace {

struct Unref {
  void operator()(libscols_table* table) const { scols_unref_table(table); }
};

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

std::string laid_out(const Table& table, const Display& display) {
  scols_init_debug(0);
  const std::unique_ptr<libscols_table, Unref> laid(scols_new_table());
  const auto shown = fitting(table, display.columns);
  for (const std::size_t each : shown) {
    const Column& column = table.columns[each];
    // libsmartcols would keep a width only for texts that are longer than the title.
    const std::string title(column.longest - std::min(column.longest, column.title.size()), ' ');
    scols_table_new_column(laid.get(), (title + column.title).c_str(), 0,
                           (column.number ? SCOLS_FL_RIGHT : 0) | (column.name ? SCOLS_FL_TRUNC : 0));
  }
  for (const Row& row : table.rows) {
    libscols_line* const line = scols_table_new_line(laid.get(), nullptr);
    for (std::size_t i = 0; i < shown.size(); ++i) scols_line_set_data(line, i, row.texts[shown[i]].c_str());
  }
  scols_table_set_termforce(laid.get(), display.terminal ? SCOLS_TERMFORCE_ALWAYS : SCOLS_TERMFORCE_NEVER);
  scols_table_set_termwidth(laid.get(), display.columns);
  char* text = nullptr;
  if (scols_print_table_to_string(laid.get(), &text) != 0) return "";
  const std::unique_ptr<char, void (*)(void*)> owner(text, std::free);
  return text;
}

} // namespace

std::vector<Line> table_lines(const Table& table, const Display& display) {
  std::vector<Line> lines;
  const std::string all = laid_out(table, display);
  for (std::size_t at = 0; at < all.size();) {
    const std::size_t end = std::min(all.find('\n', at), all.size());
    std::string text = all.substr(at, end - at);
    text.erase(text.find_last_not_of(' ') + 1);
    const std::size_t row = lines.size(); // 0: the titles
    lines.push_back({std::move(text), row == 0                   ? Style::title
                                      : row <= table.rows.size() ? table.rows[row - 1].style
                                                                 : Style::plain});
    at = end + 1;
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
