// SPDX-License-Identifier: BSD-3-Clause
// Sends to the next rank and reads from the one before, BYTES at a time, until ROUNDS are over (0: never) or
// something fails. Says "ready RANK PID" after its first round.
// Usage: ring BYTES ROUNDS [exit|abort|kill RANK STATUS]: that rank ends so after its first round.
#include "tests/support/programs/rank.hpp"

#include <csignal>
#include <cstring>
#include <unistd.h>

int main(int argc, char** argv) {
  if (argc != 3 && argc != 6) return 2;
  const std::size_t bytes = std::strtoull(argv[1], nullptr, 10);
  const unsigned long rounds = std::strtoul(argv[2], nullptr, 10);
  const int deserter = argc == 6 ? std::atoi(argv[4]) : -1;
  parc_context* parc = rank::open();
  const int size = parc_size(parc);
  const int before = (rank::number + size - 1) % size;
  auto* out = static_cast<unsigned char*>(parc_alloc(parc, bytes));
  auto* in = static_cast<unsigned char*>(parc_alloc(parc, bytes));
  rank::expect(out != nullptr && in != nullptr, "no memory");
  for (unsigned long round = 0; rounds == 0 || round < rounds; ++round) {
    out[0] = static_cast<unsigned char>(round);
    out[bytes - 1] = static_cast<unsigned char>(round + static_cast<unsigned long>(rank::number));
    parc_op operations[] = {parc_initread(parc, before, 0, in, bytes),
                            parc_initwrite(parc, (rank::number + 1) % size, 0, out, bytes)};
    rank::expect(operations[0] > 0 && operations[1] > 0, "cannot start round %lu", round);
    rank::expect_code(parc_waitall(parc, 2, operations, nullptr), PARC_OK, "waitall");
    const auto last = static_cast<unsigned char>(round + static_cast<unsigned long>(before));
    rank::expect(in[bytes - 1] == last && (bytes == 1 || in[0] == static_cast<unsigned char>(round)),
                 "wrong bytes in round %lu", round);
    if (round != 0) continue;
    std::printf("ready %d %d\n", rank::number, static_cast<int>(getpid()));
    std::fflush(stdout);
    if (rank::number == deserter && std::strcmp(argv[3], "exit") == 0) std::exit(std::atoi(argv[5]));
    if (rank::number == deserter && std::strcmp(argv[3], "kill") == 0) std::raise(std::atoi(argv[5]));
    if (rank::number == deserter) parc_abort(parc, std::atoi(argv[5]));
  }
  rank::expect_code(parc_close(parc), PARC_OK, "close");
}
