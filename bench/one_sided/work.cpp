// SPDX-License-Identifier: BSD-3-Clause
#include "bench/one_sided/work.hpp"
#include "bench/figures/bench.hpp"

#include <algorithm>
#include <cstring>

namespace parc::bench {
namespace {

// Of which no part can be left out.
double chain(double from, unsigned rounds) {
  for (unsigned i = 0; i < rounds; ++i) from = from * 0.999999 + 1e-9;
  return from;
}

volatile double kept; // what was calculated

double seconds_of(unsigned rounds) {
  double best = 1e9;
  for (int i = 0; i < 5; ++i) {
    const double begin = seconds_now();
    kept = chain(kept, rounds);
    best = std::min(best, seconds_now() - begin);
  }
  return best;
}

} // namespace

Work::Work(std::size_t bytes, double seconds) : copy_(bytes) {
  constexpr unsigned sample = 2'000'000;
  static const double a_round = seconds_of(sample) / sample;
  const double pages = static_cast<double>((bytes + page - 1) / page);
  rounds_ = static_cast<unsigned>(std::max(0.0, seconds / pages / a_round));
}

void Work::on(const unsigned char* got, std::size_t begin, std::size_t end) {
  for (std::size_t at = begin; at < end; at += page) {
    std::memcpy(copy_.data() + at, got + at, std::min(page, end - at));
    kept = chain(copy_[at], rounds_);
  }
}

void calculate_for(double seconds) {
  for (const double end = seconds_now() + seconds; seconds_now() < end;) kept = chain(kept, 10'000);
}

} // namespace parc::bench
