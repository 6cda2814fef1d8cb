// SPDX-License-Identifier: BSD-3-Clause
// A terminal that the test is, with one process on it, which dies with it.
#pragma once

#include "system/fd.hpp"

#include <array>
#include <string>
#include <sys/types.h>
#include <termios.h>
#include <vector>

namespace parc::test {

class Terminal {
public:
  // `type`: TERM; `columns`: its width.
  Terminal(const std::string& type, std::vector<std::string> command, unsigned short columns = 160);
  Terminal(const Terminal&) = delete;
  Terminal& operator=(const Terminal&) = delete;
  ~Terminal();

  // It is sent `text`, behind what was waited for before.
  [[nodiscard]] bool shows(const std::string& text);
  void type(const std::string& keys);
  void resize(unsigned short rows);
  void signal(int number) const;
  void hang_up() { near_.reset(); }
  [[nodiscard]] int wait(); // its exit status, 128 + N when a signal ended it
  [[nodiscard]] const std::string& sent() const { return sent_; } // and not waited for
  [[nodiscard]] bool sent(const std::string& text) const { return sent_.find(text) != sent_.npos; }
  [[nodiscard]] bool is_as_before() const { return modes() == before_; }

private:
  [[nodiscard]] std::array<tcflag_t, 4> modes() const;
  [[nodiscard]] std::string read() const;

  unsigned short columns_;
  Fd near_, far_; // the far one is its terminal
  std::array<tcflag_t, 4> before_{};
  pid_t process_ = -1;
  std::string sent_;
};

} // namespace parc::test
