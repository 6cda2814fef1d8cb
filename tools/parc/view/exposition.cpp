// SPDX-License-Identifier: BSD-3-Clause
#include "tools/parc/view/exposition.hpp"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

namespace parc::tools {
namespace {

// The format is UTF-8; a program's name need not be.
std::string in_utf8(const std::string& text) {
  const std::string dumped =
      nlohmann::json(text).dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
  return nlohmann::json::parse(dumped).get<std::string>();
}

std::string escaped(const std::string& text) {
  std::string all;
  for (const char each : in_utf8(text)) {
    if (each == '\\' || each == '"') all += '\\';
    if (each == '\n')
      all += "\\n";
    else
      all += each;
  }
  return all;
}

} // namespace

void Exposition::family(std::string_view name, std::string_view help) {
  name_ = name;
  text_ += fmt::format("# HELP {} {}\n# TYPE {} {}\n", name, help, name,
                       name.ends_with("_total") ? "counter" : "gauge");
}

void Exposition::sample(const Labels& labels, double value) {
  sample(labels, fmt::format("{}", value));
}

void Exposition::sample(const Labels& labels, std::uint64_t value) {
  sample(labels, fmt::to_string(value));
}

void Exposition::sample(const Labels& labels, const std::string& value) {
  text_ += name_ + '{';
  bool first = true;
  add(common_, first);
  add(labels, first);
  text_ += fmt::format("}} {}\n", value);
}

void Exposition::add(const Labels& labels, bool& first) {
  for (const auto& [name, value] : labels) {
    text_ += fmt::format("{}{}=\"{}\"", first ? "" : ",", name, escaped(value));
    first = false;
  }
}

} // namespace parc::tools
