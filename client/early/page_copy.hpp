// SPDX-License-Identifier: BSD-3-Clause
// Pages from one place to another, as numbers.
#pragma once

#include <cstddef>
#include <cstdint>

namespace parc::client {

inline void* pointer(std::uintptr_t address) {
  return reinterpret_cast<void*>(address);
}

// Pages that are all zero need no memory at the other place, which is zeros to begin with. Word by word, and
// not through the C library: a sanitizer would object to what lies between the program's objects.
__attribute__((no_sanitize("address", "undefined"))) inline void copy_pages(void* to, const void* from,
                                                                            std::size_t bytes) {
  constexpr std::size_t words = 4096 / sizeof(std::uint64_t);
  const auto* source = static_cast<const volatile std::uint64_t*>(from);
  auto* target = static_cast<volatile std::uint64_t*>(to);
  for (std::size_t page = 0; page < bytes / 4096; ++page, source += words, target += words) {
    std::uint64_t any = 0;
    for (std::size_t i = 0; i < words; ++i) any |= source[i];
    if (any == 0) continue;
    for (std::size_t i = 0; i < words; ++i) target[i] = source[i];
  }
}

} // namespace parc::client
