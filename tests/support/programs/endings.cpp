// SPDX-License-Identifier: BSD-3-Clause
// Two ranks and how operations end: truncated, canceled, with a peer that has departed, and probes of what is
// there. Rank 1 departs first.
#include "tests/support/programs/rank.hpp"

#include <array>
#include <cstring>
#include <sched.h>

namespace {

constexpr int tag_long = 1, tag_stored = 2, tag_probed = 3, tag_huge = 4;
constexpr std::size_t huge = 5'000'000;

void stay(parc_context* parc) {
  // Too long for its read, short and long: nothing is written past the buffer, and its length is told.
  for (const std::size_t length : {std::size_t{1000}, huge}) {
    std::array<unsigned char, 64> buffer;
    buffer.fill(0xee);
    parc_status status;
    rank::expect_code(parc_read(parc, 1, tag_long, buffer.data(), 10, &status), PARC_ETRUNCATE,
                      "a long message");
    rank::expect(status.length == length && status.error == PARC_ETRUNCATE, "its length is wrong");
    rank::expect(rank::filled(buffer.data(), 10, 7) && buffer[10] == 0xee, "its beginning is wrong");
  }
  const parc_envelope probed = parc_envelope_of(PARC_ANY_SOURCE, 0, tag_probed);
  parc_status status;
  rank::expect_code(parc_probe(parc, &probed, &status), PARC_OK, "probe");
  rank::expect(status.source == 1 && status.length == 3, "the probe saw something else");
  rank::expect(parc_iprobe(parc, &probed, &status) == 1, "it has gone");
  char word[4] = {};
  rank::expect_code(parc_read(parc, 1, tag_probed, word, sizeof word, nullptr), PARC_OK, "read");
  rank::expect(std::strcmp(word, "abc") == 0 && parc_iprobe(parc, &probed, &status) == 0,
               "it is still there");

  char nothing = 0;
  const parc_op lost = parc_initread(parc, 1, 99, &nothing, 1);
  const parc_op canceled = parc_initread(parc, 1, 98, &nothing, 1);
  rank::expect_code(parc_cancel(parc, canceled), PARC_OK, "cancel");
  rank::expect_code(parc_wait(parc, canceled, nullptr), PARC_ECANCELED, "a canceled read");
  rank::expect_code(parc_write(parc, 1, 0, "go", 2), PARC_OK, "write");

  rank::expect_code(parc_wait(parc, lost, nullptr), PARC_EPEER, "a read that nobody answers");
  rank::expect_code(parc_read(parc, PARC_ANY_SOURCE, 97, &nothing, 1, nullptr), PARC_EPEER,
                    "a read from nobody");
  // What it wrote before it left may still be read.
  for (int i = 0; i < 100; ++i) {
    int value = -1;
    rank::expect_code(parc_read(parc, 1, tag_stored, &value, sizeof value, nullptr), PARC_OK,
                      "a stored message");
    rank::expect(value == i, "stored message %d is %d", i, value);
  }
  auto* stored = static_cast<unsigned char*>(parc_alloc(parc, huge));
  rank::expect_code(parc_read(parc, 1, tag_huge, stored, huge, nullptr), PARC_OK, "a long stored message");
  rank::expect(rank::filled(stored, huge, 8), "it is wrong");
  rank::expect_code(parc_read(parc, 1, tag_stored, &nothing, 1, nullptr), PARC_EPEER, "one more");
  rank::expect_code(parc_write(parc, 1, 0, stored, huge), PARC_EPEER, "a write to nobody");
  const parc_op tested = parc_initread(parc, 1, 99, &nothing, 1);
  int code = 0;
  while ((code = parc_test(parc, tested, nullptr)) == 0) sched_yield();
  rank::expect_code(code, PARC_EPEER, "a read that is only tested");
  rank::expect_code(parc_close(parc), PARC_OK, "close");
}

void depart(parc_context* parc) {
  auto* memory = static_cast<unsigned char*>(parc_alloc(parc, huge));
  rank::fill(memory, huge, 7);
  rank::expect_code(parc_write(parc, 0, tag_long, memory, 1000), PARC_OK, "a write that is truncated");
  rank::expect_code(parc_write(parc, 0, tag_long, memory, huge), PARC_OK, "a long write that is truncated");
  rank::expect_code(parc_write(parc, 0, tag_probed, "abc", 3), PARC_OK, "write");
  char word[2];
  rank::expect_code(parc_read(parc, 0, 0, word, 2, nullptr), PARC_OK, "read");
  for (int i = 0; i < 100; ++i)
    rank::expect_code(parc_write(parc, 0, tag_stored, &i, sizeof i), PARC_OK, "write");
  rank::fill(memory, huge, 8);
  rank::expect(parc_initwrite(parc, 0, tag_huge, memory, huge) > 0, "initwrite");
  rank::expect_code(parc_close(parc), PARC_OK, "close"); // with that one under way
}

} // namespace

int main() {
  parc_context* parc = rank::open();
  if (rank::number == 0)
    stay(parc);
  else
    depart(parc);
}
