// SPDX-License-Identifier: BSD-3-Clause
// Numbers with a unit, as people write them to an option: 20ms, 100mbit, 1MiB. Case does not matter.
#pragma once

#include "system/error.hpp"

#include <array>
#include <span>
#include <string_view>

namespace parc {

struct Unit {
  std::string_view name; // lower case
  double factor;
};
inline constexpr std::array time_units{Unit{"ns", 1e-9}, Unit{"us", 1e-6}, Unit{"ms", 1e-3}, Unit{"s", 1}};
inline constexpr std::array rate_units{
    Unit{"bit", 1},    Unit{"kbit", 1e3},   Unit{"mbit", 1e6},   Unit{"gbit", 1e9}, // a second
    Unit{"bit/s", 1},  Unit{"kbit/s", 1e3}, Unit{"mbit/s", 1e6}, Unit{"gbit/s", 1e9},
    Unit{"kb/s", 8e3}, Unit{"mb/s", 8e6},   Unit{"gb/s", 8e9}};
inline constexpr std::array size_units{Unit{"", 1},       Unit{"b", 1},
                                       Unit{"k", 1024},   Unit{"m", 1024 * 1024},
                                       Unit{"kib", 1024}, Unit{"mib", 1024 * 1024},
                                       Unit{"kb", 1e3},   Unit{"mb", 1e6}};
inline constexpr std::array share_units{Unit{"", 1}, Unit{"%", 0.01}};

// What an option takes: its name, its units, its largest value and an example for the error.
struct Quantity {
  std::string_view option;
  std::span<const Unit> units;
  double limit;
  std::string_view example;
};

// In seconds, bits a second, bytes, or as it is; from 0 to the limit. 0 needs no unit.
[[nodiscard]] Result<double> parse_quantity(std::string_view written, const Quantity& quantity);

} // namespace parc
