// SPDX-License-Identifier: BSD-3-Clause
#include "tools/wanlink/settings.hpp"

#include "system/quantity.hpp"

#include <algorithm>
#include <array>
#include <cerrno>
#include <charconv>
#include <cmath>
#include <strings.h>
#include <type_traits>

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

constexpr Quantity delay_quantity{"--delay", time_units, 60, "10ms"};
constexpr Quantity rtt_quantity{"--rtt", time_units, 120, "20ms"};
constexpr Quantity jitter_quantity{"--jitter", time_units, 60, "500us"};
constexpr Quantity rate_quantity{"--rate", rate_units, 1e12, "100mbit, or unlimited"};
constexpr Quantity connection_rate_quantity{"--connection-rate", rate_units, 1e12, "250mbit, or unlimited"};
constexpr Quantity packet_quantity{"--largest-packet", size_units, 65536, "1200B"};
constexpr Quantity queue_quantity{"--queue", size_units, 1e10, "1MiB"};
constexpr Quantity loss_quantity{"--loss", share_units, 1, "1% or 0.01"};

// A rate may also be none.
Result<double> parse_number(const std::string& written, const Quantity& quantity) {
  const auto is = [&](const char* word) { return strcasecmp(written.c_str(), word) == 0; };
  if (quantity.units.data() == rate_units.data() && (is("unlimited") || is("none"))) return 0.0;
  return parse_quantity(written, quantity);
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
    change.forth.*member = static_cast<T>(std::is_integral_v<T> ? std::round(value * scale) : value * scale);
  }
  if (!back.empty()) {
    PARC_TRY(value, parse_number(back, quantity));
    change.back.*member = static_cast<T>(std::is_integral_v<T> ? std::round(value * scale) : value * scale);
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
  settings.largest_packet = largest_packet.value_or(settings.largest_packet);
}

Result<TwoWayChange> parse(const ChangeText& text) {
  TwoWayChange change;
  PARC_TRY(parse_pair(text.rtt, rtt_quantity, &Change::delay_ns, change, 0.5e9));
  PARC_TRY(parse_pair(text.delay, delay_quantity, &Change::delay_ns, change, 1e9));
  PARC_TRY(parse_pair(text.jitter, jitter_quantity, &Change::jitter_ns, change, 1e9));
  PARC_TRY(parse_pair(text.rate, rate_quantity, &Change::rate, change));
  PARC_TRY(parse_pair(text.queue, queue_quantity, &Change::queue, change));
  PARC_TRY(parse_pair(text.loss, loss_quantity, &Change::loss, change));
  PARC_TRY(parse_pair(text.connection_rate, connection_rate_quantity, &Change::connection_rate, change));
  PARC_TRY(parse_pair(text.largest_packet, packet_quantity, &Change::largest_packet, change));
  return change;
}

Result<std::vector<Direction>> parse_directions(const std::string& text) {
  std::vector<Direction> directions;
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t end = std::min(text.find(',', at), text.size());
    const std::string word = text.substr(at, end - at);
    const auto wrong = [&word] {
      return error(EINVAL, "--closed does not understand \"{}\"; write it like b:a, or b:a/22", word);
    };
    const std::size_t colon = word.find(':'), slash = std::min(word.find('/'), word.size());
    if (colon == 0 || colon >= slash || colon + 1 == slash) return wrong();
    Direction& made =
        directions.emplace_back(Direction{word.substr(0, colon), word.substr(colon + 1, slash - colon - 1)});
    const char* const last = word.data() + word.size();
    for (const char* next = word.data() + slash; next != last;) {
      std::uint16_t& port = made.ports.emplace_back();
      const auto [stop, failure] = std::from_chars(next + 1, last, port);
      if (failure != std::errc() || port == 0 || (stop != last && *stop != '/')) return wrong();
      next = stop;
    }
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
  put(json, "largest_packet", change.largest_packet);
}

void from_json(const nlohmann::json& json, Change& change) {
  take(json, "delay_ns", change.delay_ns);
  take(json, "jitter_ns", change.jitter_ns);
  take(json, "rate", change.rate);
  take(json, "queue", change.queue);
  take(json, "loss", change.loss);
  take(json, "connection_rate", change.connection_rate);
  take(json, "largest_packet", change.largest_packet);
}

} // namespace parc::wanlink
