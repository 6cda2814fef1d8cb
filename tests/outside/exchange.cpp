// SPDX-License-Identifier: BSD-3-Clause
// Every rank sends its number to the next one, and says whose it got.
#include <array>
#include <cstdio>
#include <parc/parc.hpp>

int main() {
  try {
    parc::Context p;
    const int rank = p.rank(), size = p.size();
    std::array<int, 1> got{-1};
    const std::array<int, 1> mine{rank};
    auto in = p.initread((rank + size - 1) % size, 0, got);
    p.write((rank + 1) % size, 0, mine);
    in.wait();
    std::printf("%d has the number of %d\n", rank, got[0]);
  } catch (const parc::Failure& failure) {
    std::fprintf(stderr, "exchange: %s\n", failure.what());
    return 1;
  }
}
