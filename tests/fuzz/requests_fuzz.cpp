// SPDX-License-Identifier: BSD-3-Clause
// Whatever a program puts into its ring, its segments and its pipe, the kernel serves or ends that program
// alone: no crash, no byte outside of memory that was given, nothing kept of it when it has gone.
#include "tests/fuzz/requests_target.hpp"

#include <cstddef>

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size);

int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  static parc::fuzz::Host host;
  parc::fuzz::Programs programs(host);
  std::span<const std::uint8_t> input(data, size);
  while (!input.empty()) programs.play(input);
  return 0;
}
