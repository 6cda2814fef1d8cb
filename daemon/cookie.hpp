// SPDX-License-Identifier: BSD-3-Clause
// Whose operation a cookie names: the top byte is the actor, the rest is that actor's own.
#pragma once

#include <cstdint>

namespace parc::daemon {

enum class Owner : std::uint8_t { session = 1, control = 2 };

inline constexpr std::uint64_t make_cookie(Owner owner, std::uint64_t rest) {
  return static_cast<std::uint64_t>(owner) << 56 | rest;
}
inline constexpr Owner owner_of(std::uint64_t cookie) {
  return static_cast<Owner>(cookie >> 56);
}
inline constexpr std::uint64_t rest_of(std::uint64_t cookie) {
  return cookie & ((std::uint64_t{1} << 56) - 1);
}

// A session's own part: its number (16 bits), slot (12), low bits of the generation (28).
inline constexpr unsigned session_number_shift = 40;
inline constexpr unsigned session_generation_bits = 28;

} // namespace parc::daemon
