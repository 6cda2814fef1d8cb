// SPDX-License-Identifier: BSD-3-Clause
// A message that early_stress reads, and the comparison of its bytes, of the program's bytes around them, and
// of those behind a message that is shorter than its buffer.
#pragma once

#include "tests/support/programs/stress/places.hpp"

#include <atomic>
#include <unistd.h>

namespace stress {

inline std::uint64_t seed = 0;

struct Received {
  Message message{};
  Place place{};
  bool mine = false;  // it is read by this rank
  bool gone = false;  // another message was read over it, or its memory was freed
  bool shown = false; // other threads may touch it
};

// What went wrong, and all that is needed to see it again. Without exit handlers: other threads are in calls.
[[noreturn, gnu::format(printf, 4, 5)]] inline void wrong(const Received& in, std::size_t offset,
                                                          int expected_found, const char* format, ...) {
  std::array<char, 300> text{};
  va_list values;
  va_start(values, format);
  std::vsnprintf(text.data(), text.size(), format, values);
  va_end(values);
  std::fprintf(stderr,
               "rank %d: seed %llu: message %d from rank %d to %d (%zu bytes in a place of %zu, %zu pieces, "
               "%s at %p): %s: offset %zu: expected %02x, found %02x\n",
               rank::number, static_cast<unsigned long long>(seed), in.message.number, in.message.from,
               in.message.to, in.message.length, in.place.capacity, in.place.pieces.size(),
               kind_names[in.place.kind], static_cast<void*>(in.place.base), text.data(), offset,
               static_cast<unsigned>(expected_found >> 8), static_cast<unsigned>(expected_found & 0xff));
  _exit(rank::status_wrong);
}

inline void compare(const Received& in, std::size_t offset, unsigned char expected, unsigned char found,
                    const char* what) {
  if (expected != found) wrong(in, offset, expected << 8 | found, "%s", what);
}

// Bytes [from, from + bytes) of the message.
inline void check(const Received& in, std::size_t from, std::size_t bytes, const char* what) {
  in.place.each_piece(from, bytes, [&](std::size_t at, const unsigned char* memory, std::size_t length) {
    const std::size_t first = in.message.first + at;
    if (rank::filled(memory, length, in.message.key, first)) return;
    for (std::size_t i = 0; i < length; ++i)
      compare(in, at + i, rank::byte_of(in.message.key, first + i), memory[i], what);
    wrong(in, at, 0, "%s, and right when looked at again", what);
  });
}

inline void check_gaps(const Received& in, const char* what) {
  in.place.each_gap([&](const unsigned char* begin, const unsigned char* end) {
    for (const unsigned char* at = begin; at < end; ++at)
      compare(in, static_cast<std::size_t>(at - in.place.base), in.place.own, *at, what);
  });
}

inline void check_all(const Received& in, const char* what) {
  check(in, 0, in.message.length, what);
  check_gaps(in, "a byte beside the buffer has changed");
  if (in.place.filler < 0) return;
  const std::size_t rest = in.place.capacity - in.message.length;
  in.place.each_piece(in.message.length, rest,
                      [&](std::size_t at, const unsigned char* memory, std::size_t length) {
                        for (std::size_t i = 0; i < length; ++i)
                          compare(in, at + i, static_cast<unsigned char>(in.place.filler), memory[i],
                                  "a byte behind the message has changed");
                      });
}

} // namespace stress
