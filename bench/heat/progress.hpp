// SPDX-License-Identifier: BSD-3-Clause
// How far the demo is: a line that is rewritten on a terminal, a line per case where nobody watches.
#pragma once

#include <chrono>
#include <string>

namespace parc::heat::demo {

class Progress {
public:
  Progress();
  ~Progress() { clear(); }
  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;

  // Of all that is announced by begin_case() and begin(), from now on.
  void expect(double seconds, int cases);
  void begin_case() { ++case_; }
  void begin(double seconds, const std::string& what); // a run of it
  void line(const std::string& text); // stays; where nobody watches it is all there is to see
  void note(const std::string& text); // stays, for both
  void clear();

private:
  using Clock = std::chrono::steady_clock;
  [[nodiscard]] std::string how_far() const;

  bool terminal_;
  double expected_ = 0;
  double begun_ = 0; // seconds of all runs before the present one
  double present_ = 0;
  int cases_ = 0, case_ = 0;
  Clock::time_point since_;
};

// Of so many seconds that were expected, `done` have taken `used`: those that are left, in words.
[[nodiscard]] std::string time_left(double expected, double done, double used);

} // namespace parc::heat::demo
