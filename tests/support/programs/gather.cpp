// SPDX-License-Identifier: BSD-3-Clause
// Exchanges its number with both neighbours in a ring, and then tells rank 0, which hears each once.
#include "tests/support/programs/rank.hpp"

#include <vector>

int main() {
  parc_context* parc = rank::open();
  const int size = parc_size(parc), before = (rank::number + size - 1) % size,
            after = (rank::number + 1) % size;
  int from_before = -1, from_after = -1, own = rank::number;
  parc_op operations[] = {parc_initread(parc, before, 1, &from_before, sizeof from_before),
                          parc_initread(parc, after, 2, &from_after, sizeof from_after),
                          parc_initwrite(parc, after, 1, &own, sizeof own),
                          parc_initwrite(parc, before, 2, &own, sizeof own)};
  rank::expect_code(parc_waitall(parc, 4, operations, nullptr), PARC_OK, "waitall");
  rank::expect(from_before == before && from_after == after, "read %d and %d", from_before, from_after);
  if (rank::number != 0) {
    rank::expect_code(parc_wait(parc, parc_initwrite(parc, 0, 3, &own, sizeof own), nullptr), PARC_OK,
                      "write");
  } else {
    std::vector<bool> heard(static_cast<std::size_t>(size));
    for (int others = size - 1; others > 0; --others) {
      int who = -1;
      parc_status status{};
      const parc_op read = parc_initread(parc, PARC_ANY_SOURCE, 3, &who, sizeof who);
      rank::expect_code(parc_wait(parc, read, &status), PARC_OK, "read");
      rank::expect(who == status.source && who > 0 && who < size && !heard[static_cast<std::size_t>(who)],
                   "rank %d from rank %d", who, status.source);
      heard[static_cast<std::size_t>(who)] = true;
    }
    std::printf("heard %d\n", size - 1);
  }
  rank::expect_code(parc_close(parc), PARC_OK, "close");
}
