// SPDX-License-Identifier: BSD-3-Clause
// What the fuzz target of control messages is given: a byte that says in which form, one that goes with it,
// and the rest.
#pragma once

#include <cstdint>

namespace parc::fuzz {

enum class Form : std::uint8_t {
  posted, // what one kernel says to another
  frames, // what is said over the Unix socket; the second byte: in pieces of so many bytes, less one
  object, // a message in CBOR; the second byte: so many bytes in front of it are the message's payload
  words,  // what a program says at the door and is answered; the second byte: of so many ranks, less one
};
inline constexpr std::uint8_t forms = 4;

} // namespace parc::fuzz
