// SPDX-License-Identifier: BSD-3-Clause
// Lines for people, and where they are shown. On a terminal none is longer than it is wide, and what is
// unwell has a colour where the terminal has colours (NO_COLOR and TERM=dumb say no); in a file or a pipe
// everything stands whole and plain.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <string>
#include <vector>

namespace parc::tools {

struct Display {
  std::size_t columns = 80;
  bool terminal = false; // which cuts or breaks what is longer
  bool colours = false;
};
// COLUMNS says more than the terminal; where neither says it, 80.
[[nodiscard]] Display display_of(std::FILE* stream);

enum class Style : std::uint8_t { plain, title, warning, bad };

struct Line {
  std::string text;
  Style style = Style::plain;
};

void show(const std::vector<Line>& lines, std::FILE* to);

// At blanks; the second line and those behind it are indented. A word that is longer is broken.
[[nodiscard]] std::vector<std::string> wrapped(const std::string& text, std::size_t columns,
                                               std::size_t indent = 2);

} // namespace parc::tools
