// SPDX-License-Identifier: BSD-3-Clause
// A rank that tests run: sends to the next rank and reads from the one before, BYTES at a time, until ROUNDS
// are over (0: never) or something fails. Says "ready RANK PID" after its first round.
// Usage: ring BYTES ROUNDS. Exit status: 0, or 3 when an operation failed.
#include <cstdio>
#include <cstdlib>
#include <parc/parc.h>
#include <unistd.h>

namespace {

int failed(int rank, const char* what) {
  std::fprintf(stderr, "rank %d: %s: %s\n", rank, what, parc_error_detail());
  return 3;
}

} // namespace

int main(int argc, char** argv) {
  if (argc != 3) return 2;
  const std::size_t bytes = std::strtoull(argv[1], nullptr, 10);
  const unsigned long rounds = std::strtoul(argv[2], nullptr, 10);
  parc_context* parc = nullptr;
  if (parc_open(&parc) != PARC_OK) return failed(-1, "open");
  const int rank = parc_rank(parc);
  const int size = parc_size(parc);
  auto* out = static_cast<unsigned char*>(parc_alloc(parc, bytes));
  auto* in = static_cast<unsigned char*>(parc_alloc(parc, bytes));
  if (out == nullptr || in == nullptr) return failed(rank, "alloc");
  for (unsigned long round = 0; rounds == 0 || round < rounds; ++round) {
    out[0] = static_cast<unsigned char>(round);
    out[bytes - 1] = static_cast<unsigned char>(round + static_cast<unsigned long>(rank));
    parc_op operations[] = {parc_initread(parc, (rank + size - 1) % size, 0, in, bytes),
                            parc_initwrite(parc, (rank + 1) % size, 0, out, bytes)};
    if (operations[0] < 0 || operations[1] < 0) return failed(rank, "start");
    if (parc_waitall(parc, 2, operations, nullptr) != PARC_OK) return failed(rank, "wait");
    const auto last =
        static_cast<unsigned char>(round + static_cast<unsigned long>((rank + size - 1) % size));
    if ((bytes > 1 && in[0] != static_cast<unsigned char>(round)) || in[bytes - 1] != last) {
      std::fprintf(stderr, "rank %d: wrong bytes in round %lu\n", rank, round);
      return 3;
    }
    if (round == 0) {
      std::printf("ready %d %d\n", rank, static_cast<int>(getpid()));
      std::fflush(stdout);
    }
  }
  return parc_close(parc) == PARC_OK ? 0 : failed(rank, "close");
}
