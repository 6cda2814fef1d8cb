// SPDX-License-Identifier: BSD-3-Clause
// What is wrong with a command line, in sentences: CLI11's own speak of its types.
#pragma once

#include "system/quote.hpp"

#include <CLI/App.hpp>
#include <charconv>
#include <fmt/format.h>
#include <optional>
#include <string>

namespace parc {

// For the options of a command, once all are there: one that takes a value takes no empty one, which is most
// often a variable of a shell that was not set; a flag takes none.
void be_strict(CLI::App& command);

// What the parser threw.
[[nodiscard]] std::string explain(const CLI::App& command, const CLI::ParseError& problem);

// The first word that a command which allows extras did not know; none: all were known.
[[nodiscard]] std::optional<std::string> unexpected(const CLI::App& command);

// A check of CLI11: a number from `least` to `most`, which is all that the text has.
template <class Number> CLI::Validator number_from(Number least, Number most) {
  return CLI::Validator(
      [least, most](const std::string& text) -> std::string {
        Number value{};
        const auto [end, failure] = std::from_chars(text.data(), text.data() + text.size(), value);
        if (failure == std::errc{} && end == text.data() + text.size() && value >= least && value <= most)
          return {};
        return fmt::format("{} is no number from {} to {}", quote(text), least, most);
      },
      "", "");
}

} // namespace parc
