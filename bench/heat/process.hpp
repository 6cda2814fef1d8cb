// SPDX-License-Identifier: BSD-3-Clause
// Programs that the demo starts, and what they said. Invariant: a program does not outlive its Child, nor the
// demo: it is killed when either goes.
#pragma once

#include "system/error.hpp"
#include "system/fd.hpp"

#include <chrono>
#include <span>
#include <string>
#include <sys/types.h>
#include <vector>

namespace parc::heat::demo {

using Clock = std::chrono::steady_clock;
using Command = std::vector<std::string>;

// The words of a command as one line, for error sentences.
[[nodiscard]] std::string to_line(const Command& command);

// SIGINT and SIGTERM end every wait below with an error of code EINTR, so that what was started is stopped.
void catch_interrupts();

class Child {
public:
  // Its standard input is empty. Its output and errors are kept until they are asked for, or go where ours
  // go.
  enum class Output { Keep, PassOn };
  [[nodiscard]] static Result<Child> start(const Command& command, Output where = Output::Keep);
  Child(Child&& other) noexcept;
  Child& operator=(Child&& other) noexcept;
  ~Child() { kill_now(); }

  // Returns when one that runs has ended, or at `give_up`; all that have ended are then known to have.
  [[nodiscard]] static Result<void> wait_for_any(std::span<Child> children, Clock::time_point give_up);
  // Asks it to end (SIGTERM), and kills it when it has not done so within 5 s.
  void terminate();

  [[nodiscard]] bool running() const { return pid_ > 0; }
  [[nodiscard]] pid_t id() const { return pid_; }                // while it runs
  [[nodiscard]] int exit_status() const { return exit_status_; } // 128 + signal when killed
  [[nodiscard]] std::string output() const { return contents(output_); }
  [[nodiscard]] std::string errors() const { return contents(errors_); }

private:
  Child() = default;
  void kill_now();
  void reap(bool block);
  [[nodiscard]] static std::string contents(const Fd& file);

  pid_t pid_ = -1;
  Fd watch_; // pidfd
  Fd output_, errors_;
  int exit_status_ = 0;
};

struct Ended {
  int exit_status;
  std::string output, errors;
};

// Starts all of them and waits for all. When one fails the others are given a moment, and killed; when time
// runs out all are, and that is an error.
[[nodiscard]] Result<std::vector<Ended>> run_together(std::span<const Command> commands,
                                                      std::chrono::seconds patience);

} // namespace parc::heat::demo
