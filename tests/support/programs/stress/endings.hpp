// SPDX-License-Identifier: BSD-3-Clause
// What early_stress does with the memory of a message that it has read, and that may still be guarded.
#pragma once

#include "tests/support/programs/stress/received.hpp"

#include <sys/wait.h>

namespace stress {

// The program's stores come after what the message brings. In the end all is as if there had been none.
inline void store_into(const Received& in, Random& random) {
  const std::size_t from = random.below(in.place.capacity);
  const std::size_t bytes = random.between(1, std::min<std::size_t>(in.place.capacity - from, 5000));
  const auto value = static_cast<unsigned char>(random.below(256));
  in.place.each_piece(from, bytes, [&](std::size_t, unsigned char* memory, std::size_t part) {
    std::memset(memory, value, part);
  });
  const std::size_t length = in.message.length, end = from + bytes;
  check(in, 0, std::min(from, length), "a byte is wrong before a store");
  if (end < length) check(in, end, length - end, "a byte is wrong behind a store");
  in.place.each_piece(from, bytes, [&](std::size_t at, unsigned char* memory, std::size_t part) {
    for (std::size_t i = 0; i < part; ++i) {
      compare(in, at + i, value, memory[i], "the message overwrote a store");
      memory[i] = at + i < length ? rank::byte_of(in.message.key, in.message.first + at + i)
                                  : static_cast<unsigned char>(in.place.filler);
    }
  });
}

// Frees it after it was grown or cut twice.
inline void reallocate(Received& in, Random& random) {
  Place& place = in.place;
  // A chunk that is cut down to its first page and was adopted must not grow: mremap would extend a segment.
  const std::size_t least = place.span < chunk_threshold ? 1 : 8192;
  const std::size_t span = random.chance(50)   ? random.between(least, place.span)
                           : random.chance(50) ? place.span + random.below(100'000)
                                               : place.span + random.below(8000);
  auto* base = static_cast<unsigned char*>(std::realloc(place.base, span));
  rank::expect(base != nullptr, "no memory");
  for (iovec& piece : place.pieces)
    piece.iov_base = base + (static_cast<unsigned char*>(piece.iov_base) - place.base);
  place.base = base;
  std::size_t kept = 0; // bytes of the message
  place.each_piece(0, in.message.length, [&](std::size_t, const unsigned char* memory, std::size_t bytes) {
    if (memory < base + span) kept += std::min(bytes, static_cast<std::size_t>(base + span - memory));
  });
  check(in, 0, kept, "realloc lost a byte");
  std::memset(base, 77, span); // all of it is memory
  const std::size_t more = random.below(200'000);
  base = static_cast<unsigned char*>(std::realloc(base, span + more));
  rank::expect(base != nullptr, "no memory");
  for (std::size_t i = 0; i < span; ++i) compare(in, i, 77, base[i], "the second realloc lost a byte");
  std::memset(base + span, 78, more);
  std::free(base);
  in.gone = true;
}

// A child has memory of its own, and all that was still to arrive when it began.
inline void look_in_child(const Received& in) {
  const pid_t child = fork();
  rank::expect(child >= 0, "no process");
  if (child == 0) {
    check(in, 0, in.message.length, "a child sees a wrong byte");
    if (in.place.kind != arena) // that is shared
      in.place.each_piece(0, in.message.length, [](std::size_t, unsigned char* memory, std::size_t bytes) {
        std::memset(memory, 99, bytes);
      });
    _exit(0);
  }
  int status = -1;
  if (waitpid(child, &status, 0) != child || status != 0)
    wrong(in, 0, 0, "a child that looked at it ended with %#x", static_cast<unsigned>(status));
}

} // namespace stress
