// SPDX-License-Identifier: BSD-3-Clause
#include "tools/wanlink/settings.hpp"

#include <algorithm>
#include <array>
#include <cerrno>
#include <charconv>
#include <cmath>

namespace parc::wanlink {
namespace {

constexpr std::int64_t ms = 1'000'000; // in ns
constexpr std::uint64_t kbit = 1'000;
constexpr std::uint64_t mbit = 1'000'000;
constexpr std::uint64_t gbit = 1'000'000'000;

constexpr std::array preset_table{
    Preset{"wan", "20 ms round trip, 100 Mbit/s", {.delay_ns = 10 * ms, .rate = 100 * mbit}},
    Preset{"metro", "2 ms round trip, 1 Gbit/s", {.delay_ns = 1 * ms, .rate = gbit}},
    Preset{"gigabit", "no delay, 1 Gbit/s", {.rate = gbit}},
    Preset{"internet-1994", "100 ms round trip, 300 kbit/s", {.delay_ns = 50 * ms, .rate = 300 * kbit}},
    Preset{"ethernet-1994", "no delay, 10 Mbit/s", {.rate = 10 * mbit}},
    Preset{"fddi-1994", "no delay, 100 Mbit/s", {.rate = 100 * mbit}},
};

struct Unit {
  std::string_view name;
  double factor;
};
constexpr std::array time_units{Unit{"ns", 1}, Unit{"us", 1e3}, Unit{"ms", 1e6}, Unit{"s", 1e9}};
constexpr std::array rate_units{Unit{"bit", 1},      Unit{"kbit", 1e3},  Unit{"mbit", 1e6},
                                Unit{"gbit", 1e9},   Unit{"bit/s", 1},   Unit{"kbit/s", 1e3},
                                Unit{"mbit/s", 1e6}, Unit{"gbit/s", 1e9}};
constexpr std::array size_units{Unit{"", 1},       Unit{"b", 1},
                                Unit{"k", 1024},   Unit{"m", 1024 * 1024},
                                Unit{"kib", 1024}, Unit{"mib", 1024 * 1024},
                                Unit{"kb", 1e3},   Unit{"mb", 1e6}};
constexpr std::array share_units{Unit{"", 1}, Unit{"%", 0.01}};

// What an option takes: its name, its units, its largest value and an example for the error.
struct Quantity {
  std::string_view option;
  std::span<const Unit> units;
  double limit;
  std::string_view example;
};
constexpr Quantity delay_quantity{"--delay", time_units, 60e9, "10ms"};
constexpr Quantity rtt_quantity{"--rtt", time_units, 120e9, "20ms"};
constexpr Quantity jitter_quantity{"--jitter", time_units, 60e9, "500us"};
constexpr Quantity rate_quantity{"--rate", rate_units, 1e12, "100mbit, or unlimited"};
constexpr Quantity connection_rate_quantity{"--connection-rate", rate_units, 1e12, "250mbit, or unlimited"};
constexpr Quantity queue_quantity{"--queue", size_units, 1e10, "1MiB"};
constexpr Quantity loss_quantity{"--loss", share_units, 1, "1% or 0.01"};

std::string lower(std::string_view text) {
  std::string result(text);
  for (char& c : result)
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
  return result;
}

Result<double> parse_number(std::string_view written, const Quantity& quantity) {
  const std::string text = lower(written);
  if (quantity.units.data() == rate_units.data() && (text == "unlimited" || text == "none" || text == "0"))
    return 0.0;
  double number = 0;
  const auto [end, failure] = std::from_chars(text.data(), text.data() + text.size(), number);
  const std::string_view unit(end, static_cast<std::size_t>(text.data() + text.size() - end));
  for (const Unit& known : quantity.units) {
    if (failure != std::errc() || unit != known.name) continue;
    const double value = number * known.factor;
    if (std::isfinite(value) && value >= 0 && value <= quantity.limit) return value;
    return error(EINVAL, "{} {} is out of range", quantity.option, written);
  }
  if (number == 0 && failure == std::errc() && unit.empty()) return 0.0;
  return error(EINVAL, "{} does not understand \"{}\"; write it like {}", quantity.option, written,
               quantity.example);
}

// Sets `member` of both directions from VALUE, or of each from FORTH:BACK.
template <class T> Result<void> parse_pair(const std::string& text, const Quantity& quantity,
                                           std::optional<T> Change::*member, TwoWayChange& change,
                                           double scale = 1) {
  if (text.empty()) return success();
  const auto colon = text.find(':');
  const std::string forth = text.substr(0, colon);
  const std::string back = colon == std::string::npos ? forth : text.substr(colon + 1);
  if (!forth.empty()) {
    PARC_TRY(value, parse_number(forth, quantity));
    change.forth.*member = static_cast<T>(value * scale);
  }
  if (!back.empty()) {
    PARC_TRY(value, parse_number(back, quantity));
    change.back.*member = static_cast<T>(value * scale);
  }
  return success();
}

template <class T> void put(nlohmann::json& json, const char* key, const std::optional<T>& value) {
  if (value) json[key] = *value;
}

template <class T> void take(const nlohmann::json& json, const char* key, std::optional<T>& value) {
  if (const auto found = json.find(key); found != json.end()) value = found->get<T>();
}

} // namespace

std::span<const Preset> presets() {
  return preset_table;
}

Result<Settings> preset(std::string_view name) {
  std::string names;
  for (const Preset& known : preset_table) {
    if (known.name == name) return known.settings;
    names += fmt::format("{}{}", names.empty() ? "" : ", ", known.name);
  }
  return error(EINVAL, "there is no preset \"{}\"; the presets are {}", name, names);
}

void Change::apply_to(Settings& settings) const {
  settings.delay_ns = delay_ns.value_or(settings.delay_ns);
  settings.jitter_ns = jitter_ns.value_or(settings.jitter_ns);
  settings.rate = rate.value_or(settings.rate);
  settings.queue = queue.value_or(settings.queue);
  settings.loss = loss.value_or(settings.loss);
  settings.connection_rate = connection_rate.value_or(settings.connection_rate);
}

Result<TwoWayChange> parse(const ChangeText& text) {
  TwoWayChange change;
  PARC_TRY(parse_pair(text.rtt, rtt_quantity, &Change::delay_ns, change, 0.5));
  PARC_TRY(parse_pair(text.delay, delay_quantity, &Change::delay_ns, change));
  PARC_TRY(parse_pair(text.jitter, jitter_quantity, &Change::jitter_ns, change));
  PARC_TRY(parse_pair(text.rate, rate_quantity, &Change::rate, change));
  PARC_TRY(parse_pair(text.queue, queue_quantity, &Change::queue, change));
  PARC_TRY(parse_pair(text.loss, loss_quantity, &Change::loss, change));
  PARC_TRY(parse_pair(text.connection_rate, connection_rate_quantity, &Change::connection_rate, change));
  return change;
}

Result<std::vector<Direction>> parse_directions(const std::string& text) {
  std::vector<Direction> directions;
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t end = std::min(text.find(',', at), text.size());
    const std::string word = text.substr(at, end - at);
    const std::size_t colon = word.find(':');
    if (colon == std::string::npos || colon == 0 || colon + 1 == word.size())
      return error(EINVAL, "--closed does not understand \"{}\"; write it like b:a", word);
    directions.push_back({word.substr(0, colon), word.substr(colon + 1)});
    at = end + 1;
  }
  return directions;
}

void to_json(nlohmann::json& json, const Change& change) {
  json = nlohmann::json::object();
  put(json, "delay_ns", change.delay_ns);
  put(json, "jitter_ns", change.jitter_ns);
  put(json, "rate", change.rate);
  put(json, "queue", change.queue);
  put(json, "loss", change.loss);
  put(json, "connection_rate", change.connection_rate);
}

void from_json(const nlohmann::json& json, Change& change) {
  take(json, "delay_ns", change.delay_ns);
  take(json, "jitter_ns", change.jitter_ns);
  take(json, "rate", change.rate);
  take(json, "queue", change.queue);
  take(json, "loss", change.loss);
  take(json, "connection_rate", change.connection_rate);
}

} // namespace parc::wanlink
