// SPDX-License-Identifier: BSD-3-Clause
// Texts that travel one behind the other, each with a zero behind it: they need not be UTF-8.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace parc::control {

inline void add_text(std::string& texts, std::string_view text) {
  (texts += text) += '\0';
}

// None: there is no zero behind the last one.
[[nodiscard]] std::optional<std::vector<std::string>> texts_in(std::string_view texts);

} // namespace parc::control
