// SPDX-License-Identifier: BSD-3-Clause
#include "tools/parc/screen/screen.hpp"

#include <algorithm>
#include <cerrno>
#include <clocale>
#include <curses.h>
#include <poll.h>
#include <unistd.h>

namespace parc::tools {
namespace {

class CursesScreen final : public Screen {
public:
  explicit CursesScreen(SCREEN* screen) : screen_(screen) {
    cbreak();
    noecho();
    keypad(stdscr, TRUE);
    curs_set(0);
  }
  CursesScreen(const CursesScreen&) = delete;
  CursesScreen& operator=(const CursesScreen&) = delete;
  ~CursesScreen() override {
    endwin();
    delscreen(screen_);
  }

  [[nodiscard]] std::size_t height() const override {
    return static_cast<std::size_t>(std::max(getmaxy(stdscr), 0));
  }

  [[nodiscard]] std::size_t width() const override {
    return static_cast<std::size_t>(std::max(getmaxx(stdscr), 1));
  }

  // ncurses sends what has changed.
  void draw(const std::vector<Line>& lines) override {
    erase();
    for (std::size_t i = 0; i < std::min(lines.size(), height()); ++i) {
      attrset(attributes_of(lines[i].style));
      mvaddnstr(static_cast<int>(i), 0, lines[i].text.c_str(), getmaxx(stdscr));
    }
    attrset(A_NORMAL);
    refresh();
  }

  [[nodiscard]] int key(std::chrono::milliseconds longest) override {
    timeout(static_cast<int>(longest.count()));
    const int key = getch();
    if (key == KEY_RESIZE) return resized;
    if (key != ERR) return key;
    pollfd terminal{STDIN_FILENO, 0, 0};
    return poll(&terminal, 1, 0) == 1 ? gone : nothing;
  }

private:
  enum Pair : short { yellow = 1, red };

  // Without colours what is unwell is bold.
  static bool start_colours() {
    if (!display_of(stdout).colours || !has_colors() || start_color() != OK) return false;
    const short background = use_default_colors() == OK ? -1 : COLOR_BLACK;
    init_pair(yellow, COLOR_YELLOW, background);
    init_pair(red, COLOR_RED, background);
    return true;
  }

  [[nodiscard]] int attributes_of(Style style) const {
    switch (style) {
    case Style::plain: return A_NORMAL;
    case Style::title: return A_REVERSE;
    case Style::warning: return static_cast<int>(colours_ ? COLOR_PAIR(yellow) : A_BOLD);
    case Style::bad: return static_cast<int>(A_BOLD | (colours_ ? COLOR_PAIR(red) : 0));
    }
    return A_NORMAL;
  }

  SCREEN* screen_;
  bool colours_ = start_colours();
};

} // namespace

Result<std::unique_ptr<Screen>> Screen::open() {
  if (isatty(STDOUT_FILENO) == 0 || isatty(STDIN_FILENO) == 0)
    return error(ENOTTY, "parc top draws on a terminal, and this is none; parc top --batch prints tables");
  std::setlocale(LC_ALL, "");
  SCREEN* const screen = newterm(nullptr, stdout, stdin);
  if (screen == nullptr) {
    const char* const type = getenv("TERM");
    return error(ENOTTY,
                 "parc top cannot draw on a terminal of type \"{}\" (TERM); parc top --batch prints tables",
                 type == nullptr ? "" : type);
  }
  return std::unique_ptr<Screen>(std::make_unique<CursesScreen>(screen));
}

} // namespace parc::tools
