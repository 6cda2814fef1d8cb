// SPDX-License-Identifier: BSD-3-Clause
#pragma once

namespace parc::client {

// Tells the core that it polls.
inline void relax() {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#elif defined(__aarch64__)
  asm volatile("yield");
#endif
}

} // namespace parc::client
