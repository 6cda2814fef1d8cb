// SPDX-License-Identifier: BSD-3-Clause
// What is said of a message, or of the operation that is for it, besides its envelope's numbers: one
// definition for the program's call, the request to the kernel, the engine and the wire, through which these
// sixteen bits go by value. The low ones are the PARC_* flags of parc.h, which client/calls holds to that.
#pragma once

#include <cstdint>

namespace parc::protocol {

enum class MessageFlags : std::uint16_t {
  none = 0,
  from_end = 1,    // from its last byte to its first; of an envelope: the eager part is the message's end
  early = 2,       // its wait may be released early; the library's alone
  synchronous = 4, // the write waits for the match, which `want` or `matched` says
  no_wait = 8,     // probe: answer at once; unmap: before the memory's last use has ended
  claim = 16,      // probe: nobody else gets the message
  queued = 32,     // its end is told by the completion queue
  untagged = 64,   // it is in the space of messages without a tag
  with_data = 128, // its writer has sent data with it, which may be 0
  // No flags of parc.h:
  barrier = 256, // it is in the library's space, which no read of the program's sees
  claimed = 512, // read: of the message that a probe has claimed
  whole = 1024,  // envelope: all of its message is eager (one of no bytes may have it or not)
  // Envelope: its writer has left, and what it wrote goes whether there is credit for envelopes or not: its
  // departure is announced behind that.
  parting = 2048,
  rows = 4096, // of a put or get: Rows ride before all else
};

[[nodiscard]] constexpr MessageFlags operator|(MessageFlags a, MessageFlags b) {
  return static_cast<MessageFlags>(static_cast<std::uint16_t>(a) | static_cast<std::uint16_t>(b));
}
[[nodiscard]] constexpr MessageFlags operator&(MessageFlags a, MessageFlags b) {
  return static_cast<MessageFlags>(static_cast<std::uint16_t>(a) & static_cast<std::uint16_t>(b));
}
[[nodiscard]] constexpr MessageFlags operator~(MessageFlags a) {
  return static_cast<MessageFlags>(~static_cast<std::uint16_t>(a));
}
constexpr MessageFlags& operator|=(MessageFlags& a, MessageFlags b) {
  return a = a | b;
}
constexpr MessageFlags& operator&=(MessageFlags& a, MessageFlags b) {
  return a = a & b;
}
[[nodiscard]] constexpr bool has(MessageFlags flags, MessageFlags any_of) {
  return (flags & any_of) != MessageFlags::none;
}
[[nodiscard]] constexpr MessageFlags when(bool holds, MessageFlags flags) {
  return holds ? flags : MessageFlags::none;
}

// Those of a write that its reader's host has to know.
inline constexpr MessageFlags flags_that_travel =
    MessageFlags::from_end | MessageFlags::synchronous | MessageFlags::with_data;
// All that an envelope may have.
inline constexpr MessageFlags flags_of_envelope =
    flags_that_travel | MessageFlags::whole | MessageFlags::parting | MessageFlags::rows;

// Which messages an envelope is among: no read matches a message of another space.
enum class Space : std::uint8_t {
  programs,
  barriers,
  kernels,
  untagged,   // programs' messages without a tag
  neighbours, // of programs of one host, who have matched the message themselves; never on a link
};

// Of a message or read of a program's.
[[nodiscard]] constexpr Space space_of(MessageFlags flags) {
  return has(flags, MessageFlags::barrier)    ? Space::barriers
         : has(flags, MessageFlags::untagged) ? Space::untagged
                                              : Space::programs;
}

} // namespace parc::protocol
