// SPDX-License-Identifier: BSD-3-Clause
#include "bench/heat/progress.hpp"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <fmt/format.h>
#include <sys/ioctl.h>
#include <unistd.h>

namespace parc::heat::demo {

namespace {

void print(const std::string& text) {
  std::fputs(text.c_str(), stderr);
  std::fflush(stderr);
}

// A line that fills the last column is broken by some terminals, and could not be taken back.
std::size_t room() {
  winsize size{};
  const bool known = ioctl(STDERR_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 1;
  return known ? size.ws_col - 1U : 79U;
}

} // namespace

std::string time_left(double expected, double done, double used) {
  const double pace = done > 0 ? used / done : 1;
  const double left = std::max(0.0, (expected - done) * pace);
  return left < 100 ? fmt::format("{:.0f} s left", std::ceil(left))
                    : fmt::format("{:.0f} min left", std::ceil(left / 60));
}

Progress::Progress() : terminal_(isatty(STDERR_FILENO) != 0) {}

void Progress::expect(double seconds, int cases) {
  expected_ = seconds;
  cases_ = cases;
  begun_ = present_ = 0;
  since_ = Clock::now();
}

std::string Progress::how_far() const {
  if (cases_ == 0) return "";
  constexpr int width = 10;
  const double share = expected_ > 0 ? std::min(1.0, begun_ / expected_) : 0;
  const int filled = static_cast<int>(share * width);
  const double used = std::chrono::duration<double>(Clock::now() - since_).count();
  return fmt::format("[{:#<{}}{:.<{}}] case {} of {}, {}: ", "", filled, "", width - filled, case_, cases_,
                     time_left(expected_, begun_, used));
}

void Progress::begin(double seconds, const std::string& what) {
  begun_ += present_;
  present_ = seconds;
  if (terminal_) print("\r\033[K" + (how_far() + what).substr(0, room()));
}

void Progress::line(const std::string& text) {
  if (!terminal_) print(text + "\n");
}

void Progress::note(const std::string& text) {
  clear();
  print(text + "\n");
}

void Progress::clear() {
  if (terminal_) print("\r\033[K");
}

} // namespace parc::heat::demo
