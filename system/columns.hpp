// SPDX-License-Identifier: BSD-3-Clause
// Texts in columns, for people: one line for each row, a blank between two columns. What the locale does not
// print, or a terminal would obey, is shown as the numbers of its bytes.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

namespace parc {

using Texts = std::vector<std::string>; // one of each column

// How wide each column has to be, in characters of a terminal; the first line has as many texts as any.
[[nodiscard]] std::vector<std::size_t> column_widths(const std::vector<Texts>& lines);

// A line without its end. Texts that are wider than their column are cut; those to the right end where it
// ends, the others are filled up to there but for the last.
[[nodiscard]] std::string in_columns(const Texts& texts, const std::vector<std::size_t>& widths,
                                     const std::vector<bool>& to_the_right);

// All of them, each column as wide as it has to be. The first are the titles; nothing where they are alone.
[[nodiscard]] std::string in_columns(const std::vector<Texts>& lines, const std::vector<bool>& to_the_right);

} // namespace parc
