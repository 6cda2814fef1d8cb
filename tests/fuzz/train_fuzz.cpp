// SPDX-License-Identifier: BSD-3-Clause
// Whatever a peer sends, the engine takes it or refuses it: no crash, no byte outside of memory that was
// given, the pool within its bounds, one end for each operation.
#include "tests/fuzz/train_target.hpp"

#include <cstddef>

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size);

int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  parc::fuzz::Target target;
  while (!target.say().empty()) {
  }
  std::span<const std::uint8_t> input(data, size);
  while (input.size() > 2) {
    const std::size_t length = std::min<std::size_t>(input[0] | std::size_t{input[1]} << 8, input.size() - 2);
    if (length == 0) target.attach();
    if (!target.take(input.subspan(2, length))) return 0;
    input = input.subspan(2 + length);
    while (!target.say().empty()) {
    }
    target.rest();
    while (!target.say().empty()) {
    }
  }
  return 0;
}
