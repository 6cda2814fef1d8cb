// SPDX-License-Identifier: BSD-3-Clause
#include "control/words/texts.hpp"

namespace parc::control {

std::optional<std::vector<std::string>> texts_in(std::string_view texts) {
  std::vector<std::string> all;
  while (!texts.empty()) {
    const auto end = texts.find('\0');
    if (end == texts.npos) return {};
    all.emplace_back(texts.substr(0, end));
    texts.remove_prefix(end + 1);
  }
  return all;
}

} // namespace parc::control
