// SPDX-License-Identifier: BSD-3-Clause
// Every rank starts a send of BYTES to every other before any of them reads: whoever needs room in a buffer
// for that is stuck here for ever.
#include "tests/support/programs/rank.hpp"

#include <vector>

int main(int argc, char** argv) {
  if (argc != 2) return 2;
  const std::size_t bytes = std::strtoull(argv[1], nullptr, 10);
  parc_context* parc = rank::open();
  const int size = parc_size(parc);
  void* out = parc_alloc(parc, bytes);
  rank::expect(out != nullptr, "no memory");
  rank::fill(out, bytes, static_cast<std::uint64_t>(rank::number));
  std::vector<parc_op> writes;
  for (int peer = 0; peer < size; ++peer)
    if (peer != rank::number) writes.push_back(parc_initwrite(parc, peer, 1, out, bytes));
  rank::expect_code(parc_barrier(parc), PARC_OK, "barrier"); // all have started theirs
  void* in = parc_alloc(parc, bytes);
  rank::expect(in != nullptr, "no memory");
  for (int peer = 0; peer < size; ++peer) {
    if (peer == rank::number) continue;
    parc_status status;
    rank::expect_code(parc_read(parc, peer, 1, in, bytes, &status), PARC_OK, "read");
    rank::expect(status.length == bytes && rank::filled(in, bytes, static_cast<std::uint64_t>(peer)),
                 "wrong bytes from %d", peer);
  }
  rank::expect_code(parc_waitall(parc, static_cast<int>(writes.size()), writes.data(), nullptr), PARC_OK,
                    "waitall");
  rank::expect_code(parc_close(parc), PARC_OK, "close");
}
