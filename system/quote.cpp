// SPDX-License-Identifier: BSD-3-Clause
#include "system/quote.hpp"

#include <fmt/format.h>

namespace parc {

std::string quote(std::string_view text) {
  constexpr std::size_t longest = 80;
  std::string out = "\"";
  for (const char c : text.substr(0, longest)) {
    if (c >= ' ' && c <= '~')
      out += c;
    else
      out += fmt::format("\\x{:02x}", static_cast<unsigned char>(c));
  }
  return out + (text.size() > longest ? "...\"" : "\"");
}

std::string harmless(std::string_view text) {
  std::string out(text);
  for (char& c : out)
    if (c < ' ' || c > '~') c = '?';
  return out;
}

} // namespace parc
