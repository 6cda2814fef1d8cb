// SPDX-License-Identifier: BSD-3-Clause
// Two ranks, and N operations that are unfinished at once, of each kind: unfinished N. N reads are posted,
// ranks meet in a barrier beside them, and they are answered last first; then N writes wait for a match, and
// a message of another tag passes them all.
#include "tests/support/programs/rank.hpp"

#include <vector>

namespace {

constexpr std::size_t bytes = 8;

std::uint64_t* at(std::vector<std::uint64_t>& memory, int message) {
  return &memory[static_cast<std::size_t>(message)];
}

void read_all(parc_context* parc, int many) {
  std::vector<std::uint64_t> memory(static_cast<std::size_t>(many));
  std::vector<parc_op> reads;
  for (int i = 0; i < many; ++i) {
    reads.push_back(parc_initread(parc, 0, i, at(memory, i), bytes));
    rank::expect(reads.back() > 0, "read %d was not started", i);
  }
  rank::expect_code(parc_barrier(parc), PARC_OK, "barrier");
  rank::expect_code(parc_waitall(parc, many, reads.data(), nullptr), PARC_OK, "waitall");
  for (int i = 0; i < many; ++i) rank::expect(rank::filled(at(memory, i), bytes, i), "read %d", i);

  rank::expect_code(parc_barrier(parc), PARC_OK, "barrier");
  rank::expect_code(parc_read(parc, 0, many, nullptr, 0, nullptr), PARC_OK, "what passes them");
  for (int i = 0; i < many; ++i) {
    std::uint64_t message = 0;
    rank::expect_code(parc_read(parc, 0, i, &message, bytes, nullptr), PARC_OK, "read");
    rank::expect(rank::filled(&message, bytes, i), "message %d", i);
  }
}

void write_all(parc_context* parc, int many) {
  rank::expect_code(parc_barrier(parc), PARC_OK, "barrier");
  std::vector<std::uint64_t> memory(static_cast<std::size_t>(many));
  for (int i = many; i-- > 0;) {
    rank::fill(at(memory, i), bytes, static_cast<std::uint64_t>(i));
    rank::expect_code(parc_write(parc, 1, i, at(memory, i), bytes), PARC_OK, "write");
  }

  rank::expect_code(parc_barrier(parc), PARC_OK, "barrier");
  std::vector<parc_op> writes;
  for (int i = 0; i < many; ++i) {
    const iovec piece{at(memory, i), bytes};
    const parc_envelope envelope = parc_envelope_of(1, 0, i);
    writes.push_back(parc_initwritev(parc, &envelope, &piece, 1, PARC_SYNCHRONOUS));
    rank::expect(writes.back() > 0, "write %d was not started", i);
  }
  rank::expect_code(parc_write(parc, 1, many, nullptr, 0), PARC_OK, "write");
  rank::expect_code(parc_waitall(parc, many, writes.data(), nullptr), PARC_OK, "waitall");
}

} // namespace

int main(int argc, char** argv) {
  if (argc != 2) return 2;
  const int many = std::atoi(argv[1]);
  parc_context* parc = rank::open();
  if (rank::number == 0)
    write_all(parc, many);
  else
    read_all(parc, many);
  rank::expect_code(parc_close(parc), PARC_OK, "close");
}
