// SPDX-License-Identifier: BSD-3-Clause
// What is wrong with a command line, in sentences: CLI11's own speak of its types.
#pragma once

#include "system/quote.hpp"

#include <CLI/App.hpp>
#include <charconv>
#include <fmt/format.h>
#include <optional>
#include <string>
#include <vector>

namespace parc {

// For the options of a command, once all are there: one that takes a value takes no empty one, which is most
// often a variable of a shell that was not set; a flag takes none.
void be_strict(CLI::App& command);

// Reads the options of a command from words[first] on, each with its value, as mpirun's users write them: a
// long one with one hyphen gets its second (-host is --host), as the parser would take -h for it and the rest
// for more short ones.
struct OptionWords {
  std::size_t end = 0; // the first word that belongs to no option: an operand, the end, or behind "--"
  std::string unknown; // an option that the command has not; empty: all are its own
};
[[nodiscard]] OptionWords read_options(CLI::App& command, std::vector<std::string>& words, std::size_t first);

// The same for all words of a program, whose first names one of its commands or is none. A sentence about the
// first that is unknown; none: all are known.
[[nodiscard]] std::optional<std::string> read_all_options(CLI::App& program, std::vector<std::string>& words);

// "COMMAND has no option WORD", and the one that was meant, or where they are listed.
[[nodiscard]] std::string no_option(const CLI::App& command, const std::string& word);

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
