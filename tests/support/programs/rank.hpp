// SPDX-License-Identifier: BSD-3-Clause
// What the programs that tests run as ranks have in common: an open context, and an end with a sentence when
// something is not as it must be.
#pragma once

#include <cstdarg>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <parc/parc.h>

// For programs that end with memory which they have hidden from a leak checker: unmapped, guarded, replaced.
#define RANK_WITHOUT_LEAK_CHECK                                                                              \
  extern "C" __attribute__((visibility("default"))) const char* __lsan_default_options();                    \
  const char* __lsan_default_options() {                                                                     \
    return "detect_leaks=0";                                                                                 \
  }

namespace rank {

inline constexpr int status_wrong = 3;
inline int number = -1;

// Ends the program with what is wrong when `right` is not so.
[[gnu::format(printf, 2, 3)]] inline void expect(bool right, const char* format, ...) {
  if (right) return;
  std::fprintf(stderr, "rank %d: ", number);
  va_list values;
  va_start(values, format);
  std::vfprintf(stderr, format, values);
  va_end(values);
  std::fprintf(stderr, " (%s)\n", parc_error_detail());
  std::exit(status_wrong);
}

inline void expect_code(int code, int wanted, const char* what) {
  expect(code == wanted, "%s gave %d, not %d", what, code, wanted);
}

inline parc_context* open() {
  parc_context* parc = nullptr;
  expect_code(parc_open(&parc), PARC_OK, "parc_open");
  number = parc_rank(parc);
  return parc;
}

// Bytes that tell where they belong: byte `offset` of message `message`.
inline unsigned char byte_of(std::uint64_t message, std::size_t offset) {
  return static_cast<unsigned char>((message * 0x9e3779b97f4a7c15 + offset * 0x2545f4914f6cdd1d) >> 32);
}

inline void fill(void* memory, std::size_t bytes, std::uint64_t message, std::size_t offset = 0) {
  auto* to = static_cast<unsigned char*>(memory);
  for (std::size_t i = 0; i < bytes; ++i) to[i] = byte_of(message, offset + i);
}

inline bool filled(const void* memory, std::size_t bytes, std::uint64_t message, std::size_t offset = 0) {
  const auto* from = static_cast<const unsigned char*>(memory);
  for (std::size_t i = 0; i < bytes; ++i)
    if (from[i] != byte_of(message, offset + i)) return false;
  return true;
}

} // namespace rank
