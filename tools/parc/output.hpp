// SPDX-License-Identifier: BSD-3-Clause
// What the ranks print, on its way to our own stdout and stderr. Lines of different ranks are kept apart: the
// beginning of a line waits a moment for its end.
//
// What stdout or stderr refuses is lost, which is said once; a reader that has gone ends this process.
//
// Invariant: nothing here blocks. What stdout does not take waits in order, and pending() says so: the caller
// then reads no more output and polls fd() for room.
#pragma once

#include <array>
#include <cstdint>
#include <deque>
#include <map>
#include <string>
#include <string_view>
#include <unistd.h>
#include <utility>

namespace parc::tools {

class Output {
public:
  explicit Output(bool tagged) : tagged_(tagged) {}

  void add(std::uint64_t rank, int fd, std::string_view bytes);
  [[nodiscard]] bool holds_beginnings() const { return !beginnings_.empty() && !tagged_; }
  void let_go(); // of beginnings that have waited long enough: a prompt, a row of dots
  void finish(); // no rank writes any more

  [[nodiscard]] bool pending() const { return !pending_.empty(); }
  [[nodiscard]] int fd() const { return pending_.front().fd; }
  void write_some();                                               // when fd() has room
  [[nodiscard]] bool lost() const { return lost_[0] || lost_[1]; } // some of it

private:
  struct Piece {
    int fd;
    std::string bytes;
  };
  void emit(std::uint64_t rank, int fd, std::string_view lines);
  void emit_all(bool end_lines);
  void lose(int fd);
  bool& lost(int fd) { return lost_[fd == STDERR_FILENO ? 1 : 0]; }

  bool tagged_;
  std::map<std::pair<std::uint64_t, int>, std::string> beginnings_; // by rank and descriptor
  std::deque<Piece> pending_;
  std::array<bool, 2> lost_{}; // of stdout, of stderr
};

} // namespace parc::tools
