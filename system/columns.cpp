// SPDX-License-Identifier: BSD-3-Clause
#include "system/columns.hpp"

#include <algorithm>
#include <cctype>
#include <cwchar>
#include <cwctype>
#include <fmt/format.h>
#include <string_view>

namespace parc {
namespace {

struct Character {
  std::string bytes;
  std::size_t width;
};

std::vector<Character> characters_of(std::string_view text) {
  std::vector<Character> characters;
  for (std::mbstate_t state{}; !text.empty();) {
    wchar_t wide = 0;
    std::size_t length = std::mbrtowc(&wide, text.data(), text.size(), &state);
    const bool whole = length != 0 && length <= text.size();
    if (!whole) length = 1, state = {};
    if (whole && std::iswprint(static_cast<std::wint_t>(wide)) != 0 && !text.starts_with("\\x")) {
      characters.push_back({std::string(text.substr(0, length)), static_cast<std::size_t>(wcwidth(wide))});
    } else {
      for (const char byte : text.substr(0, length))
        for (const char digit : fmt::format("\\x{:02x}", static_cast<unsigned char>(byte)))
          characters.push_back({std::string(1, digit), 1});
    }
    text.remove_prefix(length);
  }
  return characters;
}

std::size_t width_of(const std::vector<Character>& characters) {
  std::size_t width = 0;
  for (const Character& each : characters) width += each.width;
  return width;
}

} // namespace

std::vector<std::size_t> column_widths(const std::vector<Texts>& lines) {
  std::vector<std::size_t> widths(lines.empty() ? 0 : lines.front().size(), 1);
  for (const Texts& texts : lines)
    for (std::size_t i = 0; i < texts.size(); ++i)
      widths[i] = std::max(widths[i], width_of(characters_of(texts[i])));
  return widths;
}

std::string in_columns(const Texts& texts, const std::vector<std::size_t>& widths,
                       const std::vector<bool>& to_the_right) {
  std::string line;
  for (std::size_t i = 0; i < texts.size(); ++i) {
    std::vector<Character> characters = characters_of(texts[i]);
    while (width_of(characters) > widths[i]) characters.pop_back();
    const bool last = i + 1 == texts.size();
    const std::string blanks(widths[i] - width_of(characters), ' ');
    if (to_the_right[i] && !(last && characters.empty())) line += blanks;
    for (const Character& each : characters) line += each.bytes;
    if (!last) line += to_the_right[i] ? " " : blanks + ' ';
  }
  return line;
}

std::string in_columns(const std::vector<Texts>& lines, const std::vector<bool>& to_the_right) {
  if (lines.size() < 2) return "";
  const std::vector<std::size_t> widths = column_widths(lines);
  std::string all;
  for (const Texts& texts : lines) all += in_columns(texts, widths, to_the_right) + '\n';
  return all;
}

} // namespace parc
