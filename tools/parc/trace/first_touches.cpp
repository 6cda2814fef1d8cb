// SPDX-License-Identifier: BSD-3-Clause
#include "tools/parc/trace/first_touches.hpp"

#include <algorithm>

namespace parc::tools {
namespace {

struct Stretch {
  std::uint64_t low, high;
};

// As client/early/strips.hpp has it, for one read.
class Replay {
public:
  Replay(const TouchedRead& read, bool downwards, std::uint64_t strip, const Machine& machine)
      : read_(read), downwards_(downwards), strip_(strip), machine_(machine), time_(read.released) {
    constexpr std::uint64_t longest = std::uint64_t{64} << 10;
    constexpr double wakes_worth = 8;
    const double rate = read.last_byte > read.first_byte
                            ? static_cast<double>(read.bytes) / (read.last_byte - read.first_byte)
                            : static_cast<double>(longest);
    const double brings = std::min(rate * wakes_worth * machine.wake, static_cast<double>(longest));
    measured_ = std::min(read.bytes / 4, static_cast<std::uint64_t>(brings));
  }

  double waits() {
    double free_from = read_.released;
    for (const Sweep& sweep : read_.sweeps) {
      if (time_ >= read_.last_byte) break; // nothing is missing any more
      time_ += std::max(0.0, sweep.begin - free_from);
      play(sweep);
      free_from = sweep.last;
    }
    return waits_;
  }

private:
  // What lies behind the end of a message that is shorter than its buffer is no part of it.
  void play(const Sweep& sweep) {
    const std::uint64_t most = read_.bytes / machine_.page_bytes + 1; // of a file that makes sense
    if (sweep.pages == 0 || sweep.pages > most) return;
    const std::uint64_t steps = sweep.pages - 1;
    const double work =
        steps == 0 ? 0
                   : std::max(0.0, sweep.last - sweep.begin - sweep.in_faults) / static_cast<double>(steps);
    const bool up = sweep.last_offset >= sweep.offset;
    const std::uint64_t step =
        steps == 0 ? 0 : (up ? sweep.last_offset - sweep.offset : sweep.offset - sweep.last_offset) / steps;
    for (std::uint64_t i = 0; i < sweep.pages && time_ < read_.last_byte; ++i) {
      const std::uint64_t offset = up ? sweep.offset + i * step : sweep.offset - i * step;
      if (i != 0) time_ += work;
      if (offset < read_.bytes) touch(offset);
    }
  }

  void touch(std::uint64_t offset) {
    const double there = arrival(awaited({offset, std::min(offset + machine_.page_bytes, read_.bytes)}));
    if (there <= time_) return;
    waits_ += there + machine_.wake - time_;
    time_ = there + machine_.wake;
  }

  [[nodiscard]] Stretch awaited(Stretch touched) const {
    if (strip_ == measured_strips) {
      if (downwards_)
        touched.low = std::min(touched.low, touched.high - std::min(touched.high, measured_));
      else
        touched.high = std::max(touched.high, touched.low + measured_);
    } else if (strip_ >= read_.bytes) {
      return {0, read_.bytes};
    } else {
      touched = {touched.low / strip_ * strip_, ((touched.high - 1) / strip_ + 1) * strip_};
    }
    return {touched.low, std::min(touched.high, read_.bytes)};
  }

  [[nodiscard]] double arrival(const Stretch& bytes) const {
    const std::uint64_t before = downwards_ ? read_.bytes - bytes.low : bytes.high;
    return read_.first_byte + (read_.last_byte - read_.first_byte) * static_cast<double>(before) /
                                  static_cast<double>(read_.bytes);
  }

  const TouchedRead& read_;
  const bool downwards_;
  const std::uint64_t strip_;
  const Machine& machine_;
  std::uint64_t measured_ = 0;
  double time_, waits_ = 0;
};

// By a twentieth, and by a hundredth of the time in which all came.
bool is_better(double waits, double than, const std::vector<TouchedRead>& reads) {
  double took = 0;
  for (const TouchedRead& read : reads) took += read.last_byte - read.first_byte;
  return waits < 0.95 * than && waits < than - 0.01 * took;
}

Suggestion best_strip(const std::vector<TouchedRead>& reads, bool downwards, const Machine& machine) {
  Suggestion best{downwards ? TouchOrder::down : TouchOrder::up, measured_strips,
                  replay(reads, downwards, measured_strips, machine)};
  const double at_first = best.waits;
  std::uint64_t longest = 0;
  for (const TouchedRead& read : reads) longest = std::max(longest, read.bytes);
  const auto consider = [&](std::uint64_t strip) {
    const double waits = replay(reads, downwards, strip, machine);
    if (is_better(waits, at_first, reads) && waits < best.waits) best = {best.order, strip, waits};
  };
  consider(whole_strip);
  for (std::uint64_t strip = machine.page_bytes; strip <= longest / 2; strip *= 2) consider(strip);
  return best;
}

} // namespace

TouchOrder order_of(const std::vector<TouchedRead>& reads) {
  std::uint64_t up = 0, down = 0;
  const auto step = [&](std::uint64_t from, std::uint64_t to, std::uint64_t steps) {
    if (to > from) up += steps;
    if (to < from) down += steps;
  };
  for (const TouchedRead& read : reads)
    for (std::size_t i = 0; i < read.sweeps.size(); ++i) {
      const Sweep& sweep = read.sweeps[i];
      if (i != 0) step(read.sweeps[i - 1].last_offset, sweep.offset, 1);
      step(sweep.offset, sweep.last_offset, sweep.pages - 1);
    }
  if (up > 9 * down) return TouchOrder::up;
  return down > 9 * up ? TouchOrder::down : TouchOrder::any;
}

double replay(const std::vector<TouchedRead>& reads, bool downwards, std::uint64_t strip,
              const Machine& machine) {
  double sum = 0;
  for (const TouchedRead& read : reads) sum += Replay(read, downwards, strip, machine).waits();
  return sum;
}

Suggestion suggest(const std::vector<TouchedRead>& reads, const Machine& machine) {
  const Suggestion up = best_strip(reads, false, machine), down = best_strip(reads, true, machine);
  if (is_better(down.waits, up.waits, reads)) return down;
  return {order_of(reads) == TouchOrder::up ? TouchOrder::up : TouchOrder::any, up.strip, up.waits};
}

} // namespace parc::tools
