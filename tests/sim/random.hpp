// SPDX-License-Identifier: BSD-3-Clause
// Chance from a seed.
#pragma once

#include <algorithm>
#include <cstdint>
#include <initializer_list>
#include <random>

namespace parc::sim {

class Random {
public:
  explicit Random(std::uint64_t seed) : generator_(seed) {}
  std::uint64_t below(std::uint64_t n) { return generator_() % n; }
  bool one_in(std::uint64_t n) { return below(n) == 0; }
  // Small numbers as likely as large ones.
  std::uint64_t spread(std::uint64_t most) {
    std::uint64_t bits = 0;
    while (most >> bits != 0) ++bits;
    return std::min(most, below(std::uint64_t{1} << below(bits + 1)));
  }
  template <class T> T pick(std::initializer_list<T> values) { return values.begin()[below(values.size())]; }

private:
  std::mt19937_64 generator_;
};

} // namespace parc::sim
