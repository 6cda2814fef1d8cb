// SPDX-License-Identifier: BSD-3-Clause
// Rank 0 writes short messages to rank 1, which reads none, until one is refused; says with which code, and
// ends well. Usage: flood
#include "tests/support/programs/rank.hpp"

#include <unistd.h>

int main() {
  parc_context* parc = rank::open();
  if (rank::number != 0) {
    for (;;) pause(); // until the job ends
  }
  const unsigned char bytes[150]{};
  for (;;) {
    const parc_op write = parc_initwrite(parc, 1, 0, bytes, sizeof bytes);
    if (write > 0) continue;
    std::printf("refused %d\n", static_cast<int>(write));
    return 0;
  }
}
