// SPDX-License-Identifier: BSD-3-Clause
// A program that has joined a job of the fake kernel.
#pragma once

#include "fake_kernel.hpp"

#include <memory>
#include <numeric>

namespace parc::test {

struct FakeProgram {
  explicit FakeProgram(int size = 1) : kernel(size) {
    BOOST_REQUIRE_MESSAGE(parc_open(&p) == PARC_OK, parc_error_detail());
  }
  FakeProgram(const FakeProgram&) = delete;
  FakeProgram& operator=(const FakeProgram&) = delete;
  ~FakeProgram() {
    if (p) parc_close(p);
  }

  // Of the arena; freed with the context.
  char* alloc(std::size_t bytes) {
    auto* const memory = static_cast<char*>(parc_alloc(p, bytes));
    BOOST_REQUIRE_MESSAGE(memory, parc_error_detail());
    return memory;
  }

  FakeKernel kernel;
  parc_context* p = nullptr;
};

// Bytes that tell where they belong.
inline std::string pattern(std::size_t bytes, unsigned seed = 1) {
  std::string text(bytes, '\0');
  std::uint32_t state = seed;
  for (auto& byte : text) byte = static_cast<char>((state = state * 1664525 + 1013904223) >> 24);
  return text;
}

} // namespace parc::test
