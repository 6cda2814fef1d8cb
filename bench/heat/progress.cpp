// SPDX-License-Identifier: BSD-3-Clause
#include "bench/heat/progress.hpp"

#include <algorithm>
#include <cstdio>
#include <fmt/format.h>
#include <unistd.h>

namespace parc::heat::demo {

namespace {
void print(const std::string& text) {
  std::fputs(text.c_str(), stderr);
  std::fflush(stderr);
}
} // namespace

Progress::Progress() : terminal_(isatty(STDERR_FILENO) != 0) {}

void Progress::begin(double seconds, const std::string& what) {
  begun_ += present_;
  present_ = seconds;
  if (!terminal_) return;
  constexpr int width = 30;
  const double share = expected_ > 0 ? std::min(1.0, begun_ / expected_) : 0;
  const int filled = static_cast<int>(share * width);
  print(fmt::format("\r\033[K[{:#<{}}{:.<{}}] {:3.0f} %  {}", "", filled, "", width - filled, share * 100,
                    what));
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
