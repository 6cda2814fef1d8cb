// SPDX-License-Identifier: BSD-3-Clause
#include "tests/support/terminal.hpp"

#include "tests/support/process.hpp"

#include <boost/test/unit_test.hpp>
#include <csignal>
#include <cstdlib>
#include <fcntl.h>
#include <pty.h>
#include <sys/ioctl.h>
#include <sys/wait.h>
#include <unistd.h>
#include <utmp.h>

namespace parc::test {

Terminal::Terminal(const std::string& type, std::vector<std::string> command, unsigned short columns)
    : columns_(columns) {
  const winsize size{.ws_row = 40, .ws_col = columns, .ws_xpixel = 0, .ws_ypixel = 0};
  int near = -1, far = -1;
  BOOST_REQUIRE(openpty(&near, &far, nullptr, nullptr, &size) == 0);
  near_.reset(near);
  far_.reset(far);
  fcntl(near, F_SETFL, fcntl(near, F_GETFL) | O_NONBLOCK);
  before_ = modes();
  process_ = fork();
  if (process_ == 0) {
    close(near); // else it would never hang up
    login_tty(far);
    setenv("TERM", type.c_str(), 1);
    unsetenv("COLUMNS"); // which would say more than the terminal
    unsetenv("NO_COLOR");
    std::vector<char*> words;
    for (std::string& word : command) words.push_back(word.data());
    words.push_back(nullptr);
    execv(words[0], words.data());
    _exit(127);
  }
}

Terminal::~Terminal() {
  if (process_ <= 0) return;
  kill(process_, SIGKILL);
  waitpid(process_, nullptr, 0);
}

bool Terminal::shows(const std::string& text) {
  const bool shown = eventually([&] {
    sent_ += read();
    return sent_.find(text) != sent_.npos;
  });
  BOOST_TEST(shown, "no \"" << text << "\" in\n" << sent_.substr(0, 4000));
  sent_.erase(0, shown ? sent_.find(text) + text.size() : 0);
  return shown;
}

void Terminal::type(const std::string& keys) {
  BOOST_REQUIRE(write(near_.get(), keys.data(), keys.size()) > 0);
}

void Terminal::resize(unsigned short rows) {
  const winsize size{.ws_row = rows, .ws_col = columns_, .ws_xpixel = 0, .ws_ypixel = 0};
  BOOST_REQUIRE(ioctl(near_.get(), TIOCSWINSZ, &size) == 0);
}

void Terminal::signal(int number) const {
  kill(process_, number);
}

int Terminal::wait() {
  int status = 0;
  const bool over = eventually([&] {
    sent_ += read(); // or it could not write
    return waitpid(process_, &status, WNOHANG) == process_;
  });
  BOOST_REQUIRE(over);
  process_ = -1;
  sent_ += read();
  return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

std::array<tcflag_t, 4> Terminal::modes() const {
  termios all{};
  BOOST_REQUIRE(tcgetattr(far_.get(), &all) == 0);
  return {all.c_iflag, all.c_oflag, all.c_cflag, all.c_lflag};
}

std::string Terminal::read() const {
  std::string all;
  std::array<char, 4096> piece;
  for (ssize_t got; (got = ::read(near_.get(), piece.data(), piece.size())) > 0;)
    all.append(piece.data(), static_cast<std::size_t>(got));
  return all;
}

} // namespace parc::test
