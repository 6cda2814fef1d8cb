// SPDX-License-Identifier: BSD-3-Clause
// What a process of a job reads as its standard input: kept here until its pipe has taken it. How much that
// may be is its origin's business (input_window); what the process does not want is taken all the same.
#pragma once

#include "daemon/base/event.hpp"
#include "system/fd.hpp"

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>

namespace parc::daemon {

class RankInput {
public:
  RankInput(event_base* loop, Fd pipe, std::function<void()> progress); // `progress`: more is taken
  RankInput(const RankInput&) = delete;
  RankInput& operator=(const RankInput&) = delete;
  void add(std::string_view bytes);
  void end();                                                  // nothing follows
  void discard();                                              // the process is dead
  [[nodiscard]] std::uint64_t taken() const { return taken_; } // so far

private:
  void write_some();
  void close();

  Fd pipe_;
  std::function<void()> progress_;
  std::string waiting_;
  std::uint64_t taken_ = 0;
  bool ended_ = false;
  Event writable_; // before what it uses goes
};

} // namespace parc::daemon
