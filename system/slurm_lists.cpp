// SPDX-License-Identifier: BSD-3-Clause
#include "system/slurm_lists.hpp"

#include "system/quote.hpp"

#include <cerrno>
#include <charconv>
#include <optional>

namespace parc {
namespace {

std::optional<std::uint32_t> number(std::string_view text) {
  std::uint32_t value = 0;
  const auto [end, failure] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (failure != std::errc{} || end != text.data() + text.size()) return {};
  return value;
}

Error no_list(std::string_view text) {
  return error(EINVAL, "{} is no list of nodes as Slurm writes them", quote(text));
}

// The words between commas that stand in no brackets.
std::vector<std::string_view> split(std::string_view text) {
  std::vector<std::string_view> parts;
  std::size_t begin = 0;
  int depth = 0;
  for (std::size_t i = 0; i <= text.size(); ++i) {
    if (i == text.size() || (text[i] == ',' && depth == 0)) {
      parts.push_back(text.substr(begin, i - begin));
      begin = i + 1;
    } else {
      depth += text[i] == '[' ? 1 : text[i] == ']' ? -1 : 0;
    }
  }
  return parts;
}

// "1", or "08-11", whose numbers have as many digits as the first.
Result<void> expand_range(std::string_view range, std::vector<std::string>& numbers) {
  const auto dash = range.find('-');
  const std::string_view low = range.substr(0, dash);
  const auto from = number(low), to = number(dash == range.npos ? low : range.substr(dash + 1));
  if (!from || !to || *to < *from || *to - *from >= most_listed - numbers.size()) return no_list(range);
  for (std::uint64_t i = *from; i <= *to; ++i) numbers.push_back(fmt::format("{:0{}}", i, low.size()));
  return success();
}

// The first pair of brackets, and what follows by itself.
Result<void> expand_node(std::string_view node, const std::string& before, std::vector<std::string>& names) {
  const auto open = node.find('[');
  if (open == node.npos) {
    const std::string name = before + std::string(node);
    if (name.empty() || names.size() == most_listed) return no_list(node);
    names.push_back(name);
    return success();
  }
  const auto close = node.find(']', open);
  if (close == node.npos) return no_list(node);
  std::vector<std::string> numbers;
  for (const std::string_view range : split(node.substr(open + 1, close - open - 1))) {
    PARC_TRY(expand_range(range, numbers));
  }
  for (const std::string& each : numbers) {
    PARC_TRY(expand_node(node.substr(close + 1), before + std::string(node.substr(0, open)) + each, names));
  }
  return success();
}

} // namespace

Result<std::vector<std::string>> expand_node_list(std::string_view text) {
  std::vector<std::string> names;
  for (const std::string_view node : split(text)) {
    PARC_TRY(expand_node(node, {}, names));
  }
  return names;
}

Result<std::vector<std::uint32_t>> expand_counts(std::string_view text) {
  std::vector<std::uint32_t> counts;
  for (const std::string_view part : split(text)) {
    const auto times = part.find("(x");
    const bool repeats = times != part.npos && part.back() == ')';
    const auto count = number(part.substr(0, times));
    const auto repeated =
        repeats ? number(part.substr(times + 2, part.size() - times - 3)) : std::optional<std::uint32_t>(1);
    if (!count || !repeated || (times != part.npos && !repeats) || *repeated > most_listed - counts.size())
      return error(EINVAL, "{} is no list of numbers as Slurm writes them", quote(text));
    counts.insert(counts.end(), *repeated, *count);
  }
  return counts;
}

} // namespace parc
