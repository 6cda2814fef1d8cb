// SPDX-License-Identifier: BSD-3-Clause
// How far the demo is: a bar on a terminal, a line per case where nobody watches.
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

  void expect(double seconds) { expected_ = seconds; } // of all that is announced by begin()
  void begin(double seconds, const std::string& what);
  void line(const std::string& text); // stays; where nobody watches it is all there is to see
  void note(const std::string& text); // stays, for both
  void clear();

private:
  bool terminal_;
  double expected_ = 0;
  double begun_ = 0; // seconds of all runs before the present one
  double present_ = 0;
};

} // namespace parc::heat::demo
