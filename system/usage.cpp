// SPDX-License-Identifier: BSD-3-Clause
#include "system/usage.hpp"

#include "system/nearest.hpp"

#include <CLI/CLI.hpp>
#include <algorithm>
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
  return option == nullptr || option->get_description().empty() ? std::string()
                                                                : ": " + option->get_description();
}

} // namespace

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
  std::vector<std::string> names;
  for (const CLI::Option* const option : inner.get_options()) {
    for (const auto& name : option->get_lnames()) names.push_back("--" + name);
    for (const auto& name : option->get_snames()) names.push_back("-" + name);
  }
  const std::string option = other->substr(0, other->find('='));
  const std::string meant = did_you_mean(option, std::vector<std::string_view>(names.begin(), names.end()));
  return fmt::format("{} has no option {}{}", who, option,
                     meant.empty() ? fmt::format("; {} --help lists them", who) : meant);
}

} // namespace parc
