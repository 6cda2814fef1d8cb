// SPDX-License-Identifier: BSD-3-Clause
#include "system/usage.hpp"

#include "system/nearest.hpp"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <array>
#include <cctype>
#include <vector>

namespace parc {
namespace {

bool is_flag(const CLI::Option& option) {
  return option.get_expected_max() == 0;
}

// The command whose words were parsed last.
const CLI::App& innermost(const CLI::App& command) {
  const auto parsed = command.get_subcommands();
  return parsed.empty() ? command : innermost(*parsed.back());
}

std::string full_name(const CLI::App& command) {
  const CLI::App* const parent = command.get_parent();
  return parent == nullptr ? command.get_name() : full_name(*parent) + " " + command.get_name();
}

// The name that such a message begins with.
std::string first_name(std::string_view message) {
  return std::string(message.substr(0, message.find_first_of(": ")));
}

std::string about(const CLI::App& command, const std::string& name) {
  const CLI::Option* const option = command.get_option_no_throw(name);
  std::string text = option == nullptr ? std::string() : option->get_description();
  if (text.empty()) return {};
  // Behind a colon it goes on as a sentence does; a word in capitals is a name.
  if (text.size() > 1 && std::islower(static_cast<unsigned char>(text[1])) != 0)
    text[0] = static_cast<char>(std::tolower(static_cast<unsigned char>(text[0])));
  return fmt::format(" ({})", text);
}

// Whether `text` can be the value of this option: a number for one that takes numbers.
bool takes(CLI::Option& option, std::string text) {
  for (int i = 0;; ++i) {
    const CLI::Validator* check = nullptr;
    try {
      check = option.get_validator(i);
    } catch (const CLI::OptionNotFound&) { // there are no more
      return true;
    }
    if (!(*check)(text).empty()) return false;
  }
}

struct ShortOptions {
  CLI::Option* last = nullptr; // none: there is a letter that is no option
  bool has_value = false;      // in the same word
};

// Short options in one word, as -n4 and -bn 3. What would be a value, is none and begins like a name is the
// rest of a mistyped one.
ShortOptions short_options(CLI::App& command, const std::string& word) {
  ShortOptions found;
  for (std::size_t i = 1; i < word.size(); ++i) {
    found.last = command.get_option_no_throw(fmt::format("-{}", word[i]));
    if (found.last == nullptr || (found.last == command.get_help_ptr() && word.size() > 2)) return {};
    if (is_flag(*found.last)) continue;
    const std::string value = word.substr(i + 1);
    found.has_value = !value.empty();
    const bool named = found.has_value && std::isalpha(static_cast<unsigned char>(value.front())) != 0;
    return named && !takes(*found.last, value) ? ShortOptions{} : found;
  }
  return found;
}

} // namespace

OptionWords read_options(CLI::App& command, std::vector<std::string>& words, std::size_t first) {
  std::size_t at = first;
  while (at < words.size() && words[at].size() > 1 && words[at].front() == '-' && words[at] != "--") {
    std::string& word = words[at];
    const auto name_end = word.find('=');
    ShortOptions read;
    if (const auto name = word.substr(0, name_end); name.starts_with("--"))
      read = {command.get_option_no_throw(name), name_end != word.npos};
    else if (auto* const named = name.size() > 2 ? command.get_option_no_throw("-" + name) : nullptr)
      read = {named, name_end != word.npos}, word.insert(0, "-");
    else
      read = short_options(command, word);
    if (read.last == nullptr) return {at, word};
    ++at;
    if (!is_flag(*read.last) && !read.has_value && at < words.size()) ++at;
  }
  return {at, {}};
}

std::optional<std::string> read_all_options(CLI::App& program, std::vector<std::string>& words) {
  CLI::App* command = &program;
  for (std::size_t at = 0;;) {
    const OptionWords read = read_options(*command, words, at);
    if (!read.unknown.empty()) return no_option(*command, read.unknown);
    if (read.end == words.size() || words[read.end] == "--") return {};
    for (CLI::App* const each : command->get_subcommands({}))
      if (each->get_name() == words[read.end]) command = each;
    at = read.end + 1;
  }
}

std::string no_option(const CLI::App& command, const std::string& word) {
  const std::string name = word.substr(0, word.find('='));
  std::vector<std::string> names;
  for (const CLI::Option* const option : command.get_options()) {
    for (const auto& each : option->get_lnames()) names.push_back("--" + each);
    for (const auto& each : option->get_snames()) names.push_back("-" + each);
  }
  // Any two letters are one mistake apart: of one that stands alone is known what others mean by it.
  const auto letters = std::string_view(name).substr(1);
  const bool as_of_kill = std::ranges::find(names, "--signal") != names.end() &&
                          letters.find_first_not_of("0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ") == letters.npos;
  if (name.size() == 2 || (as_of_kill && name.size() > 2)) {
    constexpr std::array<std::pair<std::string_view, std::string_view>, 4> elsewhere{
        {{"-t", "--timeout"}, {"-w", "--hosts"}, {"-D", "--wdir"}, {"-l", "--tag-output"}}};
    const auto other = std::ranges::find(elsewhere, name, &decltype(elsewhere)::value_type::first);
    std::string advice = fmt::format("; {} --help lists them", full_name(command));
    if (other != elsewhere.end() && std::ranges::find(names, other->second) != names.end())
      advice = fmt::format("; did you mean {}?", other->second);
    else if (as_of_kill)
      advice = fmt::format("; a signal is -s {}", letters);
    return fmt::format("{} has no option {}{}", full_name(command), name, advice);
  }
  // With one hyphen and several letters it was meant as a long one.
  const std::string meant = did_you_mean(name.size() > 2 && !name.starts_with("--") ? "-" + name : name,
                                         std::vector<std::string_view>(names.begin(), names.end()));
  const std::string who = full_name(command);
  return fmt::format("{} has no option {}{}", who, name,
                     meant.empty() ? fmt::format("; {} --help lists them", who) : meant);
}

void be_strict(CLI::App& command) {
  for (CLI::Option* const option : command.get_options()) {
    if (is_flag(*option))
      option->disable_flag_override();
    else
      option->check(
          [](const std::string& text) {
            return std::string(text.empty() ? "the value is empty; leave the option out, or give it one"
                                            : "");
          },
          "", "");
  }
}

std::string explain(const CLI::App& command, const CLI::ParseError& problem) {
  const CLI::App& inner = innermost(command);
  const std::string message = problem.what(), name = first_name(message);
  const auto says = [&message](std::string_view part) { return message.find(part) != message.npos; };
  if (problem.get_name() == "ArgumentMismatch") {
    if (says("flag override")) return fmt::format("--{} takes no value; write --{} alone", name, name);
    if (says("At Most")) return fmt::format("{} stands there more than once; give it once", name);
    return fmt::format("{} needs a value{}", name, about(inner, name));
  }
  if (problem.get_name() == "RequiredError" && inner.get_option_no_throw(name) != nullptr)
    return fmt::format("{} needs {}{}", full_name(inner), name, about(inner, name));
  if (problem.get_name() == "ExcludesError") return message + "; give one of them";
  return message;
}

std::optional<std::string> unexpected(const CLI::App& command) {
  const CLI::App& inner = innermost(command);
  const auto words = command.remaining(true);
  const auto other = std::ranges::find_if(words, [](const std::string& word) { return word != "--"; });
  if (other == words.end()) return {};
  const std::string who = full_name(inner);
  if (!other->starts_with('-'))
    return fmt::format("{} takes no argument {}; {} --help shows what it takes", who, quote(*other), who);
  return no_option(inner, *other);
}

} // namespace parc
