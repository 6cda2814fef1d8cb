// SPDX-License-Identifier: BSD-3-Clause
// Long messages from rank 0 to rank 1 at level envelope, into a variable, of any source and of one.
// Rank 1 works before it looks at one, and says how many of its waits of either kind were released. Usage:
// early_long MESSAGES
#include "tests/support/programs/rank.hpp"

#include <cinttypes>
#include <string>
#include <unistd.h>

namespace {

constexpr std::size_t bytes = 32 << 20, stride = 1021, page = 4096;
// Its first and its last page are nobody else's: a sanitizer's would be.
alignas(page) unsigned char variable[bytes + 2 * page];

bool is_right(const unsigned char* in, std::uint64_t message) {
  for (std::size_t at = 0; at < bytes; at += stride)
    if (!rank::filled(in + at, 1, message, at)) return false;
  return true;
}

std::uint64_t counted(parc_context* parc) {
  parc_release_counts counts;
  rank::expect_code(parc_get_release_counts(parc, &counts), PARC_OK, "counts");
  return counts.released;
}

} // namespace

int main(int argc, char** argv) {
  rank::expect(argc == 2, "usage: early_long MESSAGES");
  parc_context* const parc = rank::open();
  rank::expect_code(parc_set_release(parc, PARC_RELEASE_ENVELOPE), PARC_OK, "set_release");
  unsigned char* const memory = variable + page;
  std::uint64_t released[2] = {};
  for (std::uint64_t message = 0; message < std::stoull(argv[1]); ++message) {
    if (parc_rank(parc) == 0) {
      rank::fill(memory, bytes, message);
      rank::expect_code(parc_write(parc, 1, 0, memory, bytes), PARC_OK, "write");
    } else {
      const int from = message % 2 == 0 ? PARC_ANY_SOURCE : 0;
      const std::uint64_t before = counted(parc);
      parc_status status;
      rank::expect_code(parc_read(parc, from, 0, memory, bytes, &status), PARC_OK, "read");
      released[message % 2] += counted(parc) - before;
      rank::expect(status.source == 0 && status.tag == 0 && status.length == bytes, "wrong status");
      usleep(20'000);
      rank::expect(is_right(memory, message), "wrong bytes in message %" PRIu64, message);
    }
  }
  if (parc_rank(parc) == 1)
    for (const std::uint64_t count : released) std::printf("%" PRIu64 "\n", count);
  rank::expect_code(parc_close(parc), PARC_OK, "close");
}
