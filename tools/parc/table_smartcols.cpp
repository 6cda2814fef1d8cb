// SPDX-License-Identifier: BSD-3-Clause
#include "tools/parc/table.hpp"

#include <iostream>
#include <libsmartcols/libsmartcols.h>
#include <memory>

namespace parc::tools {
namespace {

struct Unref {
  void operator()(libscols_table* table) const { scols_unref_table(table); }
};

} // namespace

void print_table(const std::vector<Column>& columns, const std::vector<std::vector<std::string>>& rows,
                 std::FILE* to) {
  scols_init_debug(0);
  const std::unique_ptr<libscols_table, Unref> table(scols_new_table());
  for (const Column& column : columns)
    scols_table_new_column(table.get(), column.title.c_str(), 0, column.number ? SCOLS_FL_RIGHT : 0);
  for (const auto& row : rows) {
    libscols_line* line = scols_table_new_line(table.get(), nullptr);
    for (std::size_t i = 0; i < row.size(); ++i) scols_line_set_data(line, i, row[i].c_str());
  }
  std::cout.flush();
  scols_table_set_stream(table.get(), to);
  scols_print_table(table.get());
}

} // namespace parc::tools
