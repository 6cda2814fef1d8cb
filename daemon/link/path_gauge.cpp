// SPDX-License-Identifier: BSD-3-Clause
#include "daemon/link/path_gauge.hpp"

#include <algorithm>
#include <utility>

namespace parc::daemon {
namespace {

constexpr std::uint32_t samples_both_ways = 16; // since bytes came as well as went
constexpr std::uint64_t forgetting = 64;        // samples
constexpr std::uint32_t samples_of_rate = 32;
constexpr std::uint32_t shortest_paced_us = 1000; // round trip
constexpr std::uint64_t longest_train = 1u << 30, largest_product_kib = 1u << 20;

// Half a millisecond, but no more headers than are worth it.
std::uint64_t train_of(std::uint64_t millisecond) {
  constexpr std::uint64_t few_headers = 32 << 10;
  return std::min({millisecond, std::max(millisecond / 2, few_headers), longest_train});
}

} // namespace

// Where both ways are full, acknowledgements wait behind data and come in clumps. What is sent at once for a
// clump fills the queue at the slowest place, and the acknowledgements of the other side wait behind that:
// the two take turns, and each way is idle for a part of the time. What leaves a little faster than the path
// is stays even. Not while the rate still grows, as at the begin of a connection; nor where no more goes at a
// time than the path holds, of which the rate shows less than the path takes; nor for one of several streams,
// of which each knows its own share alone.
std::uint64_t PathGauge::pace(const PathSample& sample) {
  if (++samples_ == samples_of_rate) {
    const bool shows = longest_ >= 2 * (fastest_ * sample.min_rtt_us / 1'000'000);
    fastest_before_ = shows ? fastest_ : 0;
    fastest_ = longest_ = samples_ = 0;
  }
  fastest_ = std::max(fastest_, sample.delivery_rate);
  longest_ = std::max(longest_, sample.unbroken);
  const bool grows = fastest_ > fastest_before_ + fastest_before_ / 4; // or the rate is not known
  if (both_ways_ == 0 || grows || sample.streams != 1 || sample.min_rtt_us < shortest_paced_us) return 0;
  const std::uint64_t rate = std::max(fastest_, fastest_before_);
  return rate + rate / 4;
}

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
  limits_.pace = pace(sample);
  return true;
}

} // namespace parc::daemon
