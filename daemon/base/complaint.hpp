// SPDX-License-Identifier: BSD-3-Clause
// Warnings of one kind that somebody else can cause as often as he likes: the first is logged at once, those
// that follow are counted, and a line per interval says how many they were and what the last one said.
#pragma once

#include "daemon/base/loop.hpp"

#include <cstdint>
#include <string>

namespace parc::daemon {

class Complaint {
public:
  // `kind` stands behind a number: "connections refused".
  Complaint(Loop& loop, std::string kind);
  // `error`: the same for the table of errors, where each text has a row.
  void say(std::string text, ErrorKind of, const Error& error);
  // The same of who has not proved the key.
  void say_of_stranger(std::string text, const Error& error);

private:
  void say(std::string text);
  void interval_over();

  Loop& loop_;
  std::string kind_;
  std::string last_;
  std::uint64_t more_ = 0; // since the last line
  bool quiet_ = false;     // a line was logged less than an interval ago
  Timer interval_;
};

} // namespace parc::daemon
