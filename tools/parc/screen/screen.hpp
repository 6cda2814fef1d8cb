// SPDX-License-Identifier: BSD-3-Clause
// A terminal that is drawn anew again and again, by ncurses (screen_curses.cpp).
#pragma once

#include "system/error.hpp"
#include "tools/parc/screen/display.hpp"

#include <chrono>
#include <memory>
#include <vector>

namespace parc::tools {

class Screen {
public:
  // The terminal that stdout is. Its end gives it back as it was, and so does a signal that ends the process.
  [[nodiscard]] static Result<std::unique_ptr<Screen>> open();
  virtual ~Screen() = default;

  [[nodiscard]] virtual std::size_t height() const = 0;
  [[nodiscard]] virtual std::size_t width() const = 0;
  virtual void draw(const std::vector<Line>& lines) = 0; // those that do not fit are cut
  // Waits so long at most; returns `resized` at once when the terminal has another size, `gone` when it is
  // there no more.
  static constexpr int nothing = -1, resized = -2, gone = -3;
  [[nodiscard]] virtual int key(std::chrono::milliseconds longest) = 0;
};

} // namespace parc::tools
