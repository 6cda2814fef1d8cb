// SPDX-License-Identifier: BSD-3-Clause
// Small messages that carry the time when they were written, over whatever moves them. Both hosts of an
// emulation share the machine's clock, so what the reader sees is the delay of one way.
#pragma once

#include "bench/figures/places.hpp"
#include "system/error.hpp"

#include <thread>
#include <vector>

namespace parc::bench {

inline constexpr double last_stamp = 0;

// Writes one every few milliseconds while `more()` says so, and then the last one. The gaps are no multiple
// of anything that kernels or links do, and there is one before the first.
template <class Write, class More> Result<void> write_stamps(const Write& write, const More& more) {
  using namespace std::chrono_literals;
  for (int i = 0;; ++i) {
    std::this_thread::sleep_for(4ms + i % 7 * 313us);
    PARC_TRY(go_on, more());
    PARC_TRY(write(go_on ? seconds_now() : last_stamp));
    if (!go_on) return success();
  }
}

// Delays in ms of all but the last one.
template <class Read> Result<std::vector<double>> read_stamps(const Read& read) {
  std::vector<double> delays;
  for (;;) {
    PARC_TRY(stamp, read());
    if (stamp == last_stamp) return delays;
    delays.push_back((seconds_now() - stamp) * 1e3);
  }
}

// For as many as are written on an idle link.
class Countdown {
public:
  Result<bool> operator()() const { return left_-- > 0; }

private:
  mutable int left_ = 400;
};

} // namespace parc::bench
