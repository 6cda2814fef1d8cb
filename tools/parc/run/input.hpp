// SPDX-License-Identifier: BSD-3-Clause
// Our standard input, on its way to the ranks that read it: no more of it is taken than they have room for.
#pragma once

#include "tools/parc/talk/kernel_connection.hpp"

#include <cstdint>

namespace parc::tools {

class Input {
public:
  // The ranks run, and have read so much.
  void taken(std::uint64_t bytes) {
    asked_for_ = true;
    taken_ = bytes;
  }
  [[nodiscard]] bool may_read() const { return asked_for_ && !ended_ && given_ - taken_ < window; }
  // It is a terminal that belongs to another process group: who reads it would be stopped.
  [[nodiscard]] static bool in_background();
  // What is there; may_read(), and it can be read without waiting.
  [[nodiscard]] Result<void> pass_on(KernelConnection& kernel);

private:
  static constexpr std::uint64_t window = 256 << 10; // as the kernel's input_window
  bool asked_for_ = false, ended_ = false;
  std::uint64_t given_ = 0, taken_ = 0;
};

} // namespace parc::tools
