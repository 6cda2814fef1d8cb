// SPDX-License-Identifier: BSD-3-Clause
#include "tools/parc/screen/units.hpp"

#include <fmt/format.h>
#include <string_view>

namespace parc::tools {
namespace {

constexpr double rounds_to_hundred = 99.95; // with one decimal

std::string scaled(std::uint64_t number, double step, std::string_view unit) {
  constexpr std::string_view prefixes = "KMGTPE";
  double value = static_cast<double>(number) / step;
  std::size_t prefix = 0;
  for (; value >= step && prefix + 1 < prefixes.size(); value /= step) ++prefix;
  return fmt::format("{:.{}f} {}{}", value, value < rounds_to_hundred ? 1 : 0, prefixes[prefix], unit);
}

} // namespace

std::string bytes_text(std::uint64_t number) {
  return number < 1024 ? fmt::format("{} B", number) : scaled(number, 1024, "iB");
}

std::string count_text(std::uint64_t number) {
  return number < 1'000'000 ? fmt::to_string(number) : scaled(number, 1000, "");
}

std::string age_text(std::uint64_t ms) {
  if (ms < 1000) return fmt::format("{} ms", ms);
  if (ms < 120'000) return fmt::format("{:.1f} s", static_cast<double>(ms) / 1e3);
  if (ms < 6'000'000) return fmt::format("{} min", ms / 60'000);
  if (ms < 360'000'000) return fmt::format("{} h", ms / 3'600'000);
  return fmt::format("{} days", ms / 86'400'000);
}

std::string round_trip_text(std::uint64_t us) {
  const double ms = static_cast<double>(us) / 1e3;
  if (us < 100'000) return fmt::format("{:.{}f} ms", ms, us < 10'000 ? 3 : 1);
  if (us < 100'000'000) return fmt::format("{:.0f} ms", ms);
  return fmt::format("{:.0f} s", ms / 1e3);
}

std::string way_text(std::string_view way, bool encrypted, std::uint64_t streams) {
  std::string text = std::string(way).append(encrypted ? "" : ", plain");
  return streams > 1 ? fmt::format("{}, {} streams", text, streams) : text;
}

std::string duration_text(std::uint64_t seconds) {
  if (seconds < 60) return fmt::format("{} s", seconds);
  if (seconds < 3600) return fmt::format("{} min {} s", seconds / 60, seconds % 60);
  if (seconds < 86400) return fmt::format("{} h {} min", seconds / 3600, seconds / 60 % 60);
  if (seconds < 100 * 86400) return fmt::format("{} days {} h", seconds / 86400, seconds / 3600 % 24);
  return fmt::format("{} days", seconds / 86400);
}

} // namespace parc::tools
