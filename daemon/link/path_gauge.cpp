// SPDX-License-Identifier: BSD-3-Clause
#include "daemon/link/path_gauge.hpp"

#include <algorithm>
#include <utility>

namespace parc::daemon {
namespace {

constexpr std::uint32_t samples_both_ways = 16; // since bytes came as well as went
constexpr std::uint64_t forgetting = 64;        // samples
constexpr std::uint64_t longest_train = 1u << 30, largest_product_kib = 1u << 20;

// Half a millisecond, but no more headers than are worth it.
std::uint64_t train_of(std::uint64_t millisecond) {
  constexpr std::uint64_t few_headers = 32 << 10;
  return std::min({millisecond, std::max(millisecond / 2, few_headers), longest_train});
}

} // namespace

bool PathGauge::take(const PathSample& sample) {
  // What there was to send limits most samples: those show how fast the path is only when they are faster.
  if (!sample.application_limited || sample.delivery_rate > delivery_rate_)
    delivery_rate_ = sample.delivery_rate;
  else
    delivery_rate_ -= (delivery_rate_ - sample.delivery_rate) / forgetting;
  if (delivery_rate_ == 0) return false;

  const std::uint64_t millisecond = delivery_rate_ / 1000;
  const std::uint64_t product = delivery_rate_ * sample.min_rtt_us / 1'000'000;
  limits_.train = static_cast<std::uint32_t>(train_of(millisecond));
  limits_.delay_product_kib = static_cast<std::uint32_t>(std::min(product / 1024, largest_product_kib));
  limits_.unsent = static_cast<std::uint32_t>(
      std::clamp<std::uint64_t>(millisecond / 2, least_unsent / sample.streams, most_unsent));

  // Where the way back is full too, acknowledgements wait there and come in clumps: a tight limit would cost
  // throughput.
  if (sample.bytes_in - std::exchange(bytes_in_, sample.bytes_in) > sample_every / 2)
    both_ways_ = samples_both_ways;
  else if (both_ways_ != 0)
    --both_ways_;
  const std::uint64_t varies =
      delivery_rate_ * std::min(sample.rtt_variation_us, sample.min_rtt_us) / 1'000'000;
  const std::uint64_t one_way = product + product / 2 + 2 * varies + millisecond / 4 * 3;
  const std::uint64_t flight = both_ways_ != 0 ? 2 * one_way + 8 * millisecond : one_way;
  limits_.flight = std::max(flight, least_flight / sample.streams);
  return true;
}

} // namespace parc::daemon
