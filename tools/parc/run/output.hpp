// SPDX-License-Identifier: BSD-3-Clause
// What the ranks print, on its way to our own stdout and stderr. Lines of different ranks are kept apart: the
// beginning of a line waits a moment for its end. One that did not wait for it is not tagged a second time in
// its middle, unless another rank's line came between.
//
// What stdout or stderr refuses is lost, which is said once; a reader that has gone ends this process.
//
// Invariant: nothing here blocks. What stdout does not take waits in order, and pending() says so: the caller
// then reads no more output and polls fd() for room.
#pragma once

#include <array>
#include <chrono>
#include <cstdint>
#include <deque>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <unistd.h>
#include <utility>

namespace parc::tools {

class Output {
public:
  explicit Output(bool tagged) : tagged_(tagged) {}

  void add(std::uint64_t rank, int fd, std::string_view bytes);
  [[nodiscard]] bool holds_beginnings() const { return !beginnings_.empty(); }
  // Of all ranks' silence, after which let_go() is called. With tags a line that is torn has two.
  [[nodiscard]] std::chrono::milliseconds patience() const {
    return std::chrono::milliseconds(tagged_ ? 1000 : 20);
  }
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
  void emit_all();
  std::string tag(std::uint64_t rank, int fd, std::string_view lines);
  void lose(int fd);
  static std::size_t place_of(int fd) { return fd == STDERR_FILENO ? 1 : 0; }
  bool& lost(int fd) { return lost_[place_of(fd)]; }

  bool tagged_;
  std::map<std::pair<std::uint64_t, int>, std::string> beginnings_; // by rank and descriptor
  std::array<std::optional<std::uint64_t>, 2> unended_; // tagged: whose line is, on stdout and on stderr
  std::deque<Piece> pending_;
  std::array<bool, 2> lost_{}; // of stdout, of stderr
};

} // namespace parc::tools
