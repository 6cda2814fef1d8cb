// SPDX-License-Identifier: BSD-3-Clause
#include "examples/cg/phases.hpp"

#include <algorithm>
#include <cerrno>
#include <sys/prctl.h>
#include <time.h>

namespace parc::examples::cg {
namespace {

double now() {
  timespec time{};
  clock_gettime(CLOCK_MONOTONIC, &time);
  return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_nsec) / 1e9;
}

void sleep_until(double end) {
  timespec time{};
  time.tv_sec = static_cast<time_t>(end);
  time.tv_nsec = static_cast<long>((end - static_cast<double>(time.tv_sec)) * 1e9);
  while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &time, nullptr) == EINTR) {
  }
}

} // namespace

Phases::Phases(const Options& options, const std::vector<double>& asleep)
    : options_(options), asleep_(asleep) {
  prctl(PR_SET_TIMERSLACK, 1UL); // the usual 50 us a sleep are much of a short phase
}

// A calculation on a core of its own does not end late: what a sleep overran, the next one is shorter.
void Phases::sleep(Phase phase) {
  const double end = now() + asleep_[static_cast<std::size_t>(phase)] / 1e3 - late_;
  sleep_until(end);
  late_ = std::max(0.0, now() - end);
}

std::vector<Part> Phases::parts() const {
  static constexpr std::array names = {"interior", "border", "forward", "residual", "backward",
                                       "advance",  "halo",   "start",   "sums"};
  static_assert(names.size() == static_cast<std::size_t>(Phase::Count));
  std::vector<Part> parts;
  for (std::size_t i = 0; i < names.size(); ++i)
    parts.push_back({names[i], seconds_[i] * 1e3 / options_.steps});
  return parts;
}

} // namespace parc::examples::cg
