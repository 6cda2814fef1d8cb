// SPDX-License-Identifier: BSD-3-Clause
// A table, which libsmartcols fits to the terminal (table_smartcols.cpp).
#pragma once

#include <cstdint>
#include <cstdio>
#include <string>
#include <vector>

namespace parc::tools {

struct Column {
  std::string title;
  bool number = false; // to the right
};

// Rows have as many texts as there are columns.
[[nodiscard]] std::vector<std::string> table_lines(const std::vector<Column>& columns,
                                                   const std::vector<std::vector<std::string>>& rows);

// The same on a stream.
void print_table(const std::vector<Column>& columns, const std::vector<std::vector<std::string>>& rows,
                 std::FILE* to = stdout);

// What stands in one, of Unix time.
[[nodiscard]] std::string local_time(std::uint64_t unix_time);

} // namespace parc::tools
