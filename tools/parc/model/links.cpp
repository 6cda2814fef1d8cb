// SPDX-License-Identifier: BSD-3-Clause
#include "tools/parc/model/links.hpp"

#include "system/quantity.hpp"
#include "system/quote.hpp"
#include "system/read_file.hpp"
#include "tools/parc/talk/json_fields.hpp"

#include <charconv>
#include <cmath>
#include <limits>
#include <nlohmann/json.hpp>
#include <optional>

namespace parc::tools {
namespace {

constexpr double largest = 1e12; // of what has no unit
constexpr Quantity round_trip_quantity{"the round trip of a link", time_units, 120, "20ms"};
constexpr Quantity rate_quantity{"the rate of a link", rate_units, 1e15, "100mbit, 12.5MB/s or unlimited"};

struct Pair {
  std::string name, first, second;
};

// NAME=FIRST,SECOND, or FIRST,SECOND, whose name is the text itself.
std::optional<Pair> split(const std::string& text) {
  const auto equals = text.find('=');
  const std::string values = equals == text.npos ? text : text.substr(equals + 1);
  const auto comma = values.find(',');
  if (comma == values.npos || comma == 0 || comma + 1 == values.size() || equals == 0) return std::nullopt;
  return Pair{text.substr(0, equals), values.substr(0, comma), values.substr(comma + 1)};
}

std::optional<double> number(const std::string& text) {
  double value = 0;
  const auto [end, failure] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (failure != std::errc() || end != text.data() + text.size() || !(value >= 0) || value > largest)
    return std::nullopt;
  return value;
}

// The median of a figure of parc probe's.
std::optional<double> median_of(const nlohmann::json& probed, std::string_view figure) {
  const auto figures = probed.find("figures");
  if (figures == probed.end() || !figures->is_array()) return std::nullopt;
  for (const auto& each : *figures) {
    if (!each.is_object() || text_in(each, "figure") != figure) continue;
    const auto median = each.find("median");
    if (median != each.end() && median->is_number() && median->get<double>() > 0)
      return median->get<double>();
  }
  return std::nullopt;
}

} // namespace

Result<NamedLink> parse_link(const std::string& text) {
  const auto pair = split(text);
  if (!pair)
    return error(EINVAL, "{} is no link; write it as wan=20ms,100mbit: a name, a round trip and a rate",
                 quote(text));
  PARC_TRY(round_trip, parse_quantity(pair->first, round_trip_quantity));
  double rate = 0;
  if (pair->second != "unlimited") {
    PARC_TRY(limited, parse_quantity(pair->second, rate_quantity));
    rate = limited;
    if (rate == 0)
      return error(EINVAL, "a link of no rate brings nothing; write it like {}", rate_quantity.example);
  }
  return NamedLink{pair->name,
                   {round_trip / 2, rate == 0 ? std::numeric_limits<double>::infinity() : rate / 8}};
}

Result<NamedLink> read_probed_link(const std::string& file) {
  PARC_TRY(text, read_file(file, "a link from "));
  const auto probed = nlohmann::json::parse(text, nullptr, false);
  if (!probed.is_object() || !probed.contains("figures"))
    return error(EINVAL, "{} is not what parc probe --json prints", file);
  if (number_in(probed, "schema", 1).value_or(0) != 1)
    return error(EINVAL, "{} is of another version of parc probe; measure anew with the one of this parc",
                 file);
  const auto startup_us = median_of(probed, "startup"), bandwidth = median_of(probed, "bandwidth there");
  if (!startup_us || !bandwidth)
    return error(EINVAL, "{} has no startup and no bandwidth of a link; is it whole?", file);
  return NamedLink{fmt::format("{} to {}", text_in(probed, "from"), text_in(probed, "to")),
                   {*startup_us * 1e-6, *bandwidth * 1e6}};
}

Result<ModelMachine> parse_machine(const std::string& text) {
  const auto pair = split(text);
  const auto gamma = pair ? number(pair->first) : std::nullopt,
             omega = pair ? number(pair->second) : std::nullopt;
  if (!gamma || !omega)
    return error(EINVAL,
                 "{} is no machine; write it as H1=5,0.2: a name, its hardware granularity, and what hiding "
                 "costs there, Omega",
                 quote(text));
  return ModelMachine{pair->name, *gamma, *omega};
}

Result<GranularityRange> parse_granularity(const std::string& text) {
  const auto colon = text.find(':');
  const auto least = number(text.substr(0, colon));
  const auto most = colon == text.npos ? least : number(text.substr(colon + 1));
  if (!least || !most || *least <= 0 || *most < *least)
    return error(EINVAL, "{} is no software granularity; write 5, or 2:10 for all between", quote(text));
  return GranularityRange{*least, *most};
}

Result<model::Messages> parse_messages(const std::string& text) {
  if (text == "p") return model::Messages([](double p) { return p; });
  if (text == "sqrt") return model::Messages([](double p) { return std::sqrt(p); });
  const auto fixed = number(text);
  if (!fixed || *fixed <= 0)
    return error(EINVAL, "{} is no number of messages; write a number, sqrt, or p", quote(text));
  return model::Messages([count = *fixed](double) { return count; });
}

} // namespace parc::tools
