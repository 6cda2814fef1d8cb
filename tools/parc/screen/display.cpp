// SPDX-License-Identifier: BSD-3-Clause
#include "tools/parc/screen/display.hpp"

#include <algorithm>
#include <cstdlib>
#include <iostream>
#include <string_view>
#include <sys/ioctl.h>
#include <unistd.h>

namespace parc::tools {
namespace {

std::string_view variable(const char* name) {
  const char* const value = std::getenv(name);
  return value == nullptr ? "" : value;
}

std::size_t columns_of(int fd) {
  if (const int asked = std::atoi(std::string(variable("COLUMNS")).c_str()); asked > 0)
    return static_cast<std::size_t>(asked);
  winsize size{};
  return ioctl(fd, TIOCGWINSZ, &size) == 0 && size.ws_col != 0 ? size.ws_col : Display{}.columns;
}

std::string_view sequence_of(Style style) {
  switch (style) {
  case Style::plain: return "";
  case Style::title: return "\x1b[1m";
  case Style::warning: return "\x1b[33m";
  case Style::bad: return "\x1b[1;31m";
  }
  return "";
}

} // namespace

Display display_of(std::FILE* stream) {
  const int fd = fileno(stream);
  const bool terminal = isatty(fd) != 0;
  const std::string_view type = variable("TERM");
  return {.columns = columns_of(fd),
          .terminal = terminal,
          .colours = terminal && variable("NO_COLOR").empty() && !type.empty() && type != "dumb"};
}

void show(const std::vector<Line>& lines, std::FILE* to) {
  const bool colours = display_of(to).colours;
  std::string all;
  for (const Line& line : lines) {
    const std::string_view sequence = colours && !line.text.empty() ? sequence_of(line.style) : "";
    all += sequence;
    all += line.text;
    if (!sequence.empty()) all += "\x1b[0m";
    all += '\n';
  }
  if (to == stdout)
    std::cout << all; // which knows why a write fails
  else
    std::fwrite(all.data(), 1, all.size(), to);
}

std::vector<std::string> wrapped(const std::string& text, std::size_t columns, std::size_t indent) {
  const std::size_t width = std::max(columns, indent + 1);
  std::vector<std::string> lines;
  std::string rest = text;
  while (rest.size() > width) {
    const std::size_t first = rest.find_first_not_of(' '), blank = rest.rfind(' ', width);
    const bool at_blank = blank != rest.npos && blank > first;
    const std::size_t end = at_blank ? blank : width;
    lines.push_back(rest.substr(0, end));
    rest = std::string(indent, ' ') + rest.substr(at_blank ? end + 1 : end);
  }
  lines.push_back(std::move(rest));
  return lines;
}

} // namespace parc::tools
