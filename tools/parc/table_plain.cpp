// SPDX-License-Identifier: BSD-3-Clause
#include "tools/parc/table.hpp"

#include <fmt/format.h>
#include <iostream>

namespace parc::tools {

void print_table(const std::vector<Column>& columns, const std::vector<std::vector<std::string>>& rows,
                 std::FILE* to) {
  std::cout.flush();
  for (const std::string& line : table_lines(columns, rows)) fmt::print(to, "{}\n", line);
}

} // namespace parc::tools
