// SPDX-License-Identifier: BSD-3-Clause
// A table, and a page of tables and sentences.
#pragma once

#include "tools/parc/screen/display.hpp"

#include <cstdint>
#include <cstdio>
#include <initializer_list>
#include <string>
#include <utility>
#include <vector>

namespace parc::tools {

struct Column {
  std::string title;
  bool number = false;     // aligned to the right
  bool name = false;       // may be cut on a terminal
  unsigned spare = 0;      // columns with the highest go first where the table is too wide; 0: never
  std::size_t longest = 0; // characters that the column has room for at least, so that it keeps its width
};

struct Row {
  Row() = default;
  Row(std::initializer_list<std::string> texts_) : texts(texts_) {}
  explicit Row(std::vector<std::string> texts_, Style style_ = Style::plain)
      : texts(std::move(texts_)), style(style_) {}
  std::vector<std::string> texts; // as many as there are columns
  Style style = Style::plain;
};

struct Table {
  std::vector<Column> columns;
  std::vector<Row> rows;
};

// A table as lines: the titles, and a line for each row.
[[nodiscard]] std::vector<Line> table_lines(const Table& table, const Display& display);

// Sentences and tables, laid out as lines for one display.
class Page {
public:
  explicit Page(const Display& display) : display_(display) {}
  void add(const std::string& sentence, Style style = Style::plain);
  void add_blank() { lines_.push_back({}); }
  void add(const Table& table); // below a blank line; nothing where it has no rows
  [[nodiscard]] const std::vector<Line>& lines() const { return lines_; }

private:
  Display display_;
  std::vector<Line> lines_;
};

void print_table(std::vector<Column> columns, std::vector<Row> rows, std::FILE* to = stdout);

// A Unix time (seconds) as tables show it: date and time of day, local.
[[nodiscard]] std::string local_time(std::uint64_t unix_time);

} // namespace parc::tools
