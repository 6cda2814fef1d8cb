// SPDX-License-Identifier: BSD-3-Clause
// Pages that can be closed to the program, and are opened when it touches them, as libparc's guards are: here
// alone, to measure what they cost. The handler of SIGSEGV is this object's while it lives, so there is one
// at a time; a fault anywhere else ends the program as ever.
#pragma once

#include "shm/segment.hpp"

#include <chrono>
#include <csignal>

namespace parc::shm {

class GuardedPages {
public:
  // `bytes` or more: pages are whole.
  [[nodiscard]] static Result<GuardedPages> make(std::size_t bytes);
  GuardedPages(GuardedPages&& other) noexcept;
  GuardedPages& operator=(GuardedPages&&) = delete;
  ~GuardedPages();

  // False with errno when the system refuses.
  [[nodiscard]] bool close();
  [[nodiscard]] bool open();

  // Stores a byte. The handler opens all pages where they are closed.
  void touch();
  // The same for closed pages: how long the way into the handler took, and the way back out of it. What it
  // does in between, which is open(), is not counted.
  [[nodiscard]] std::chrono::nanoseconds time_fault();

private:
  explicit GuardedPages(Segment segment, std::size_t bytes);

  Segment segment_;
  std::size_t bytes_ = 0;
  struct sigaction before_ {};
};

} // namespace parc::shm
