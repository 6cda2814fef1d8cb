// SPDX-License-Identifier: BSD-3-Clause
// joiner [JOB RANK SIZE]: joins that job, or the one that the environment says, sends a word around the ring
// of its ranks, and says who it is. With "sits" behind, it stays until a signal.
#include "tests/support/programs/rank.hpp"

#include <cstring>
#include <string>
#include <unistd.h>
#include <vector>

int main(int count, char** words) {
  parc_context* parc = nullptr;
  const bool by_name = count > 3;
  const int code = by_name ? parc_join(&parc, std::strcmp(words[1], "-") == 0 ? nullptr : words[1],
                                       std::atoi(words[2]), std::atoi(words[3]))
                           : parc_open(&parc);
  if (code != PARC_OK) {
    std::fprintf(stderr, "error %d: %s\n", code, parc_error_detail());
    return 4;
  }
  rank::number = parc_rank(parc);
  const int size = parc_size(parc), next = (rank::number + 1) % size,
            before = (rank::number + size - 1) % size;
  std::vector<unsigned char> out(100'000), in(out.size());
  rank::fill(out.data(), out.size(), static_cast<std::uint64_t>(rank::number));
  const parc_op read = parc_initread(parc, before, 1, in.data(), in.size());
  rank::expect_code(parc_write(parc, next, 1, out.data(), out.size()), PARC_OK, "a write");
  rank::expect_code(parc_wait(parc, read, nullptr), PARC_OK, "a read");
  rank::expect(rank::filled(in.data(), in.size(), static_cast<std::uint64_t>(before)), "wrong bytes");
  rank::expect_code(parc_barrier(parc), PARC_OK, "a barrier");
  std::printf("%d of %d on %s\n", rank::number, size, parc_host(parc, rank::number));
  std::fflush(stdout);
  if (std::strcmp(words[count - 1], "sits") == 0) {
    if (rank::number == 0) {
      rank::expect_code(parc_read(parc, next, 2, nullptr, 0, nullptr), PARC_EPEER,
                        "a read of who was killed");
      std::printf("alone\n");
    } else {
      for (;;) pause();
    }
  }
  return parc_close(parc);
}
