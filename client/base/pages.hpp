// SPDX-License-Identifier: BSD-3-Clause
// Addresses and pages as numbers. page_size() asks the system at its first call, which must come before a
// signal handler needs it.
#pragma once

#include <cstdint>
#include <unistd.h>

namespace parc::client {

inline std::uintptr_t page_size() {
  static const auto size = static_cast<std::uintptr_t>(sysconf(_SC_PAGESIZE));
  return size;
}

// Rounds to a multiple of `unit`, a power of two.
inline std::uintptr_t round_down(std::uintptr_t address, std::uintptr_t unit) {
  return address & ~(unit - 1);
}
inline std::uintptr_t round_up(std::uintptr_t address, std::uintptr_t unit) {
  return round_down(address + unit - 1, unit);
}

inline std::uintptr_t address_of(const void* memory) {
  return reinterpret_cast<std::uintptr_t>(memory);
}

} // namespace parc::client
