// SPDX-License-Identifier: BSD-3-Clause
// Commands that are run beside this process, many at a time.
#pragma once

#include <chrono>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

namespace parc::tools {

struct Child {
  std::vector<std::string> command; // looked for in PATH
  std::string input = {};           // what it reads
  // Given, it is left alone when its output is such, and goes on by itself: it has a session of its own, and
  // nobody reads what else it says.
  std::function<bool(const std::string& output)> stays_after = {};
  // When it has ended:
  int status = -1; // its exit status, or 128 + N; 0 when it goes on
  std::string output = {}, errors = {};
  std::chrono::system_clock::time_point started = {}, ended = {};
};

constexpr std::chrono::seconds patience_with_children{60};

// Returns when all have ended or go on by themselves. One that cannot be started has status 127 and says why
// in `errors`, and so does one that is killed because it has taken longer than `patience`. A signal that ends
// this process ends them first.
void run_all(std::vector<Child>& children, std::chrono::milliseconds patience = patience_with_children);

[[nodiscard]] std::string last_line(const std::string& text); // that is not empty
// In the words of the child, which are mostly its last; `what`: how to call it when it said nothing.
[[nodiscard]] std::string why_failed(const Child& child, std::string_view what);

} // namespace parc::tools
