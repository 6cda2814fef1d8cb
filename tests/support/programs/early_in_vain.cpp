// SPDX-License-Identifier: BSD-3-Clause
// Early release of what does not pay: ranks 0 and 1 send each other messages of two pages to and fro, which
// are read from any source, into one of many buffers, and used at once.
// Usage: early_in_vain ROUNDS
#include "tests/support/programs/rank.hpp"

#include <cinttypes>
#include <string>

namespace {

constexpr std::size_t bytes = 8192, buffers = 256; // more than there are places to remember buffers in

} // namespace

int main(int argc, char** argv) {
  rank::expect(argc == 2, "usage: early_in_vain ROUNDS");
  const std::uint64_t rounds = std::stoull(argv[1]);
  parc_context* const parc = rank::open();
  rank::expect_code(parc_set_release(parc, PARC_RELEASE_ENVELOPE), PARC_OK, "set_release");
  const int other = 1 - parc_rank(parc);
  auto* const in = static_cast<unsigned char*>(parc_alloc(parc, buffers * bytes));
  auto* const out = static_cast<unsigned char*>(parc_alloc(parc, bytes));
  rank::expect(in != nullptr && out != nullptr, "no memory");
  for (std::uint64_t round = 0; round < rounds; ++round) {
    rank::fill(out, bytes, round);
    if (parc_rank(parc) == 0) rank::expect_code(parc_write(parc, other, 0, out, bytes), PARC_OK, "write");
    unsigned char* const to = in + round % buffers * bytes;
    rank::expect_code(parc_read(parc, PARC_ANY_SOURCE, 0, to, bytes, nullptr), PARC_OK, "read");
    rank::expect(rank::filled(to, bytes, round), "wrong bytes in round %" PRIu64, round);
    if (parc_rank(parc) == 1) rank::expect_code(parc_write(parc, other, 0, out, bytes), PARC_OK, "write");
  }
  rank::expect_code(parc_close(parc), PARC_OK, "close");
}
