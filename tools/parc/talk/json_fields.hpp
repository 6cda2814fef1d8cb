// SPDX-License-Identifier: BSD-3-Clause
// Members of an object that a command of ours has printed: none, or empty, where it is not there or of
// another type.
#pragma once

#include "control/message.hpp"

#include <cstdint>
#include <optional>
#include <string>

namespace parc::tools {

[[nodiscard]] inline std::optional<std::uint64_t> number_in(const nlohmann::json& object, const char* key,
                                                            std::uint64_t most) {
  const auto found = object.find(key);
  std::uint64_t number = 0;
  if (found == object.end() || !control::take_value(*found, number, most)) return {};
  return number;
}

[[nodiscard]] inline std::string text_in(const nlohmann::json& object, const char* key) {
  const auto found = object.find(key);
  return found != object.end() && found->is_string() ? found->get<std::string>() : std::string();
}

} // namespace parc::tools
