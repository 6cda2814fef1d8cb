// SPDX-License-Identifier: BSD-3-Clause
#include "system/quantity.hpp"

#include <cerrno>
#include <charconv>
#include <cmath>
#include <string>

namespace parc {
namespace {

std::string lower(std::string_view text) {
  std::string result(text);
  for (char& c : result)
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
  return result;
}

} // namespace

Result<double> parse_quantity(std::string_view written, const Quantity& quantity) {
  const std::string text = lower(written);
  double number = 0;
  const auto [end, failure] = std::from_chars(text.data(), text.data() + text.size(), number);
  const std::string_view unit(end, static_cast<std::size_t>(text.data() + text.size() - end));
  // Mb/s are bits to many, and MB/s bytes.
  if (unit.ends_with("b/s") && !written.ends_with("B/s"))
    return error(EINVAL, "{}: {} may be bits or bytes; write mbit, or MB/s", quantity.option, written);
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

} // namespace parc
