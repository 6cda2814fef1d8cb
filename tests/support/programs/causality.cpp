// SPDX-License-Identifier: BSD-3-Clause
// The causality loop of erMPI's section 2.5. Rank 0 reads from anybody, is released, and writes to rank 1,
// which answers with a message that would match that read. Rank 2's message is the one that belongs there.
// With the gate rank 1 hears nothing before that has come; without it rank 2 sends when the answer has been
// matched, and has taken its place. Rank 0 says whose message it read. Usage: causality gate|no-gate
#include "client/calls/context.hpp"
#include "tests/support/programs/rank.hpp"

#include <cstring>
#include <unistd.h>

namespace {

constexpr std::size_t bytes = 40'960;
constexpr int loop_tag = 1, note_tag = 2;

} // namespace

int main(int argc, char** argv) {
  if (argc != 2) return 2;
  const bool gate = std::strcmp(argv[1], "gate") == 0;
  parc_context* const parc = rank::open();
  auto* const block = static_cast<unsigned char*>(parc_alloc(parc, bytes));
  rank::expect(block != nullptr, "no memory");
  std::memset(block, rank::number, bytes);
  if (rank::number == 0) {
    // A context is one in this library; only a test looks inside.
    if (!gate) reinterpret_cast<parc::client::Context*>(parc)->guards().remove_gate();
    rank::expect_code(parc_set_release(parc, PARC_RELEASE_FULL), PARC_OK, "set_release");
    rank::expect_code(parc_read(parc, PARC_ANY_SOURCE, loop_tag, block, bytes, nullptr), PARC_OK, "read");
    char go = 0;
    rank::expect_code(parc_write(parc, 1, note_tag, &go, 1), PARC_OK, "write");
    std::printf("from %d\n", block[bytes / 2]);
    // The one that is left over.
    rank::expect_code(parc_read(parc, PARC_ANY_SOURCE, loop_tag, block, bytes, nullptr), PARC_OK, "read");
  } else if (rank::number == 1) {
    char note = 0;
    rank::expect_code(parc_read(parc, 0, note_tag, &note, 1, nullptr), PARC_OK, "read");
    // Two hosts' messages have no order on their ways to a third: only a match says that this one is first.
    const parc_envelope answer = parc_envelope_of(0, 0, loop_tag);
    const iovec piece{block, bytes};
    const parc_op write = parc_initwritev(parc, &answer, &piece, 1, PARC_SYNCHRONOUS);
    rank::expect_code(parc_wait(parc, write, nullptr), PARC_OK, "write");
    if (!gate) rank::expect_code(parc_write(parc, 2, note_tag, &note, 1), PARC_OK, "write");
  } else {
    char note = 0;
    if (gate)
      usleep(200'000); // for a message that escaped the gate to win
    else
      rank::expect_code(parc_read(parc, 1, note_tag, &note, 1, nullptr), PARC_OK, "read");
    rank::expect_code(parc_write(parc, 0, loop_tag, block, bytes), PARC_OK, "write");
  }
  rank::expect_code(parc_close(parc), PARC_OK, "close");
}
