// SPDX-License-Identifier: BSD-3-Clause
// Warnings of one kind that somebody else can cause as often as he likes: the first is logged at once, those
// that follow are counted, and a line per interval says how many they were and what the last one said.
#pragma once

#include "daemon/event.hpp"

#include <cstdint>
#include <string>

namespace parc::daemon {

class Complaint {
public:
  // `kind` stands behind a number: "connections refused".
  Complaint(event_base* loop, std::string kind);
  void say(std::string text);

private:
  void interval_over();

  std::string kind_;
  std::string last_;
  std::uint64_t more_ = 0; // since the last line
  bool quiet_ = false;     // a line was logged less than an interval ago
  Event interval_;
};

} // namespace parc::daemon
