// SPDX-License-Identifier: BSD-3-Clause
// A terminal that is drawn anew again and again, by ncurses (screen_curses.cpp).
#pragma once

#include "system/error.hpp"

#include <chrono>
#include <memory>
#include <string>
#include <vector>

namespace parc::tools {

class Screen {
public:
  // The terminal that stdout is. Its end gives it back as it was, and so does a signal that ends the process.
  [[nodiscard]] static Result<std::unique_ptr<Screen>> open();
  virtual ~Screen() = default;

  [[nodiscard]] virtual std::size_t height() const = 0;
  // Lines that do not fit are cut; `emphasized`: the number of one that stands out, as a heading.
  virtual void draw(const std::vector<std::string>& lines, const std::vector<std::size_t>& emphasized) = 0;
  // Waits so long at most; returns `resized` at once when the terminal has another size, `gone` when it is
  // there no more.
  static constexpr int nothing = -1, resized = -2, gone = -3;
  [[nodiscard]] virtual int key(std::chrono::milliseconds longest) = 0;
};

} // namespace parc::tools
