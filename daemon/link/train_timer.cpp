// SPDX-License-Identifier: BSD-3-Clause
#include "daemon/link/train_timer.hpp"

#include <algorithm>
#include <utility>

namespace parc::daemon {
namespace {

using namespace std::chrono_literals;
constexpr auto lowest_kept = 5min;                    // and what it was in those before
constexpr std::uint32_t smoothing = 8, variation = 4; // as TCP has them

std::uint32_t in_us(TrainTimer::Time::duration time) {
  const auto us = std::chrono::duration_cast<std::chrono::microseconds>(time).count();
  return static_cast<std::uint32_t>(std::clamp<std::int64_t>(us, 1, UINT32_MAX - 1));
}

} // namespace

// There are stages on such a way that store and forward: acknowledgements come in clumps. One sample that is
// low, or a limit that follows the lowest round trip closely, would make the next one lower still.
std::optional<PathSample> TrainTimer::take(const Moment& moment) {
  // Sequences begin anew with the session's next carrier, or go back to what was acknowledged.
  if (timed_ && moment.asked_for < timed_->train) timed_.reset();
  std::optional<PathSample> sample;
  if (timed_ && moment.acknowledged >= timed_->train) {
    const Timed timed = *std::exchange(timed_, std::nullopt);
    round_trip(std::chrono::duration_cast<Duration>(moment.now - timed.sent), moment.now, timed.waited);
    const std::uint64_t bytes = moment.bytes - timed.bytes;
    rates_[rate_++ % rates_.size()] = bytes * 1'000'000 / in_us(moment.now - timed.since);
    sample = PathSample{.delivery_rate = *std::ranges::max_element(rates_),
                        .application_limited = timed.application_limited,
                        .min_rtt_us = lowest_us(),
                        .rtt_variation_us = std::max(variation_us_, lowest_us() / 2)};
  }
  if (std::exchange(acknowledged_, moment.acknowledged) != moment.acknowledged) acknowledged_at_ = moment.now;
  const bool was_idle = std::exchange(idle_, moment.in_flight == 0);
  if (was_idle && !idle_) busy_since_ = moment.now;
  const bool sent_now = std::exchange(asked_for_, moment.asked_for) < moment.asked_for;
  if (!timed_ && sent_now && moment.asked_for > moment.acknowledged) {
    timed_ = Timed{.train = moment.asked_for,
                   .sent = moment.now,
                   .since = was_idle ? moment.now : std::max(acknowledged_at_, busy_since_),
                   .bytes = moment.bytes,
                   .application_limited = !moment.more,
                   .waited = !was_idle};
  }
  return sample;
}

void TrainTimer::round_trip(Duration time, Time now, bool waited) {
  const std::uint32_t us = in_us(time);
  if (!waited && now - lowest_since_ > lowest_kept) {
    lowest_before_us_ = std::exchange(lowest_us_, UINT32_MAX);
    lowest_since_ = now;
  }
  lowest_us_ = std::min(lowest_us_, us);
  if (smoothed_us_ == 0) {
    smoothed_us_ = us;
    variation_us_ = us / 2;
    return;
  }
  const std::uint32_t off = us > smoothed_us_ ? us - smoothed_us_ : smoothed_us_ - us;
  variation_us_ = variation_us_ - variation_us_ / variation + off / variation;
  smoothed_us_ = smoothed_us_ - smoothed_us_ / smoothing + us / smoothing;
}

std::uint32_t TrainTimer::lowest_us() const {
  const std::uint32_t lowest = std::min(lowest_us_, lowest_before_us_);
  return lowest == UINT32_MAX ? 0 : lowest;
}

} // namespace parc::daemon
