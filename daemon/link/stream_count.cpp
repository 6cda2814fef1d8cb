// SPDX-License-Identifier: BSD-3-Clause
#include "daemon/link/stream_count.hpp"

#include <algorithm>

namespace parc::daemon {
namespace {

constexpr double worth_it = 1.1;
constexpr unsigned most_failures = 2;
// A connection's rate doubles with each round trip at first.
constexpr double trips_to_grow = 8, least_growth_s = 0.3;
constexpr double trips_to_measure = 8, least_measure_s = 0.5;
constexpr double longest_making_s = 3, trips_to_make = 16;
constexpr double trickle = 64 << 10;   // bytes a second: less is idle
constexpr double most_settled_s = 300; // longer each time that the path is found to be the same
constexpr double idle_s = 10;          // then one is enough

// The first one carries nothing long where there are others.
unsigned more_than(unsigned streams) {
  return streams == 1 ? 3 : 2 * streams - 1;
}

} // namespace

void StreamCount::enter(Stage next) {
  stage_ = next;
  stage_s_ = held_up_s_ = 0;
  bytes_ = 0;
}

unsigned StreamCount::take(const StreamSample& sample) {
  const double rtt_s = sample.rtt_us / 1e6;
  const bool idle = !sample.backlog && static_cast<double>(sample.bytes) < trickle * sample.seconds;
  idle_s_ = idle ? idle_s_ + sample.seconds : 0;
  if (sample.rtt_us < short_path_us || idle_s_ >= idle_s) {
    *this = StreamCount();
    return wanted_;
  }
  if (!sample.backlog) { // what was sent says nothing of the path
    if (stage_ == Stage::measuring) enter(Stage::measuring);
    return wanted_;
  }
  stage_s_ += sample.seconds;
  if (sample.held_up) held_up_s_ += sample.seconds;
  switch (stage_) {
  case Stage::growing:
    if (sample.streams < wanted_) { // they may not come
      if (stage_s_ < std::max(longest_making_s, trips_to_make * rtt_s)) break;
      wanted_ = std::max({1u, best_, sample.streams});
      failures_ = 0;
      if (wanted_ != settled_at_) settled_s_ = least_settled_s;
      enter(Stage::settled);
    } else if (stage_s_ >= std::max(trips_to_grow * rtt_s, least_growth_s)) {
      enter(Stage::measuring);
    }
    break;
  case Stage::measuring:
    bytes_ += sample.bytes;
    if (stage_s_ >= std::max(trips_to_measure * rtt_s, least_measure_s))
      judge(static_cast<double>(bytes_) / stage_s_);
    break;
  case Stage::settled:
    if (stage_s_ < settled_s_) break;
    settled_s_ = std::min(2 * settled_s_, most_settled_s);
    settled_at_ = wanted_;
    best_rate_ = 0;
    enter(Stage::measuring);
  }
  return wanted_;
}

void StreamCount::judge(double rate) {
  const bool better = rate >= worth_it * best_rate_;
  failures_ = better ? 0 : failures_ + 1;
  if (better) {
    best_rate_ = rate;
    best_ = wanted_;
  }
  const bool fills = held_up_s_ < stage_s_ / 2;
  const bool more = !fills && failures_ < most_failures && wanted_ < most;
  wanted_ = more ? std::min(most, more_than(wanted_)) : best_;
  if (!more) failures_ = 0;
  if (!more && wanted_ != settled_at_) settled_s_ = least_settled_s;
  enter(more ? Stage::growing : Stage::settled);
}

} // namespace parc::daemon
