// SPDX-License-Identifier: BSD-3-Clause
// Two ranks and everything that a message can be matched by: 64-bit tags of which bits are ignored, the
// writer's word, claimed messages, synchronous writes; and parc_done, which spends nothing.
#include "tests/support/programs/rank.hpp"

#include <array>
#include <cstring>
#include <sched.h>
#include <unistd.h>
#include <vector>

namespace {

constexpr std::uint64_t high = 0xfeed'0000'0000'0000;
constexpr std::size_t sizes[] = {0, 10, 5000, 3'000'000};

std::uint64_t data_of(std::size_t size) {
  return high ^ size * 0x1'0001;
}

parc_status wait(parc_context* parc, parc_op operation, int wanted, const char* what) {
  parc_status status{};
  rank::expect_code(parc_wait(parc, operation, &status), wanted, what);
  return status;
}

void write_all(parc_context* parc) {
  for (const std::size_t size : sizes) {
    std::vector<unsigned char> memory(size);
    rank::fill(memory.data(), size, size);
    const iovec piece{memory.data(), size};
    // A context and a tag are the halves of a tag; the second is found by its high half alone.
    const parc_envelope of_halves = parc_envelope_of(1, 7, 5);
    const parc_envelope envelope{1, high | size, 0, data_of(size)};
    wait(parc, parc_initwritev(parc, &of_halves, &piece, 1, 0), PARC_OK, "a write of halves");
    wait(parc, parc_initwritev(parc, &envelope, &piece, 1, 0), PARC_OK, "a write by envelope");
    wait(parc, parc_initwritev(parc, &envelope, &piece, 1, 0), PARC_OK, "a write to be claimed");

    // The reader says when it has seen that this one is there and not done.
    const parc_op synchronous = parc_initwritev(parc, &envelope, &piece, 1, PARC_SYNCHRONOUS);
    char go = 0;
    rank::expect_code(parc_read(parc, 1, 1, &go, 1, nullptr), PARC_OK, "the reader's word");
    rank::expect(parc_done(parc, synchronous) == 0, "a synchronous write was done before its match");
    rank::expect_code(parc_write(parc, 1, 2, "", 0), PARC_OK, "our word");
    wait(parc, synchronous, PARC_OK, "a synchronous write");
  }
}

void read_all(parc_context* parc) {
  for (const std::size_t size : sizes) {
    std::vector<unsigned char> memory(size);
    const iovec piece{memory.data(), size};
    const auto check = [&](const parc_status& status, const char* what) {
      rank::expect(status.length == size && rank::filled(memory.data(), size, size), "%s: wrong bytes", what);
    };
    const parc_envelope by_halves{0, std::uint64_t{7} << 32 | 5, 0, 0};
    const parc_envelope any_low{0, high, UINT32_MAX, 0}, any{PARC_ANY_SOURCE, 0, UINT64_MAX, 0};
    check(wait(parc, parc_initreadv(parc, &by_halves, &piece, 1, 0), PARC_OK, "a read of halves"), "halves");
    const auto masked = wait(parc, parc_initreadv(parc, &any_low, &piece, 1, 0), PARC_OK, "a masked read");
    check(masked, "masked");
    rank::expect(masked.data == data_of(size) && (std::uint64_t{masked.context} << 32 |
                                                  static_cast<std::uint32_t>(masked.tag)) == (high | size),
                 "another tag or word");

    const parc_op claim = parc_initprobe(parc, &any, PARC_CLAIM);
    const auto claimed = wait(parc, claim, PARC_OK, "a claim");
    rank::expect(claimed.source == 0 && claimed.length == size && claimed.data == data_of(size),
                 "another claim");

    const parc_op seen = parc_initprobe(parc, &any, 0); // the synchronous one: the other is claimed
    while (parc_done(parc, seen) == 0) sched_yield();
    rank::expect(parc_done(parc, seen) == 1, "parc_done has spent it");
    wait(parc, seen, PARC_OK, "a probe");
    rank::expect_code(parc_write(parc, 0, 1, "", 1), PARC_OK, "our word");
    rank::expect_code(parc_read(parc, 0, 2, nullptr, 0, nullptr), PARC_OK, "the writer's word");
    check(wait(parc, parc_initreadv(parc, &any_low, &piece, 1, 0), PARC_OK, "a synchronous message"),
          "synchronous");

    if (size == 10) { // thrown away
      wait(parc, parc_initread_claimed(parc, claim, nullptr, 0, 0), PARC_ETRUNCATE, "a discarded message");
    } else {
      check(wait(parc, parc_initread_claimed(parc, claim, &piece, 1, 0), PARC_OK, "a claimed message"),
            "claimed");
    }
    wait(parc, parc_initread_claimed(parc, claim, &piece, 1, 0), PARC_EINVAL, "a claim read twice");
    const parc_envelope nobodys{0, 99, 0, 0};
    const auto none =
        wait(parc, parc_initprobe(parc, &nobodys, PARC_NOW | PARC_CLAIM), PARC_OK, "a claim of nothing");
    rank::expect(none.source == PARC_ANY_SOURCE, "there was a message that nobody wrote");
  }
  const parc_envelope any{PARC_ANY_SOURCE, 0, UINT64_MAX, 0};
  rank::expect_code(static_cast<int>(parc_initprobe(parc, &any, PARC_FROM_END)), PARC_EINVAL,
                    "an unknown flag");
  rank::expect_code(static_cast<int>(parc_initreadv(parc, nullptr, nullptr, 0, 0)), PARC_EINVAL,
                    "no envelope");
}

// Who looks and does nothing else finds what came before it was there, and brings on what it has written.
void only_look(parc_context* parc, bool by_name) {
  constexpr int first = 6, many = 9, answer = 10, messages = 3000;
  const parc_envelope of_first = parc_envelope_of(by_name ? 0 : PARC_ANY_SOURCE, 0, first);
  const parc_envelope of_answer = parc_envelope_of(by_name ? 1 : PARC_ANY_SOURCE, 0, answer);
  char byte = 0;
  if (rank::number == 0) {
    rank::expect_code(parc_write(parc, 1, first, &byte, 1), PARC_OK, "the first message");
    for (int i = 0; i < messages; ++i)
      rank::expect_code(parc_write(parc, 1, many, &byte, 1), PARC_OK, "one of many");
    while (parc_iprobe(parc, &of_answer, nullptr) == 0) continue;
    rank::expect_code(parc_read(parc, 1, answer, &byte, 1, nullptr), PARC_OK, "the answer");
  } else {
    while (parc_iprobe(parc, &of_first, nullptr) == 0) continue;
    rank::expect_code(parc_read(parc, 0, first, &byte, 1, nullptr), PARC_OK, "the first message");
    usleep(100'000); // it computes
    for (int i = 0; i < messages; ++i)
      rank::expect_code(parc_read(parc, 0, many, &byte, 1, nullptr), PARC_OK, "one of many");
    rank::expect_code(parc_write(parc, 0, answer, &byte, 1), PARC_OK, "the answer");
  }
}

// Whoever has read a later message of the same writer finds the earlier one at the first look.
void look_back(parc_context* parc) {
  constexpr int rounds = 300, earlier = 7, later = 8;
  const parc_envelope any = parc_envelope_of(PARC_ANY_SOURCE, 0, earlier);
  const parc_envelope writers = parc_envelope_of(0, 0, earlier);
  const parc_envelope nobodys = parc_envelope_of(PARC_ANY_SOURCE, 0, 99);
  parc_status status;
  for (int round = 0; round < rounds; ++round) {
    int number = round;
    if (rank::number == 0) {
      for (const int tag : {earlier, later})
        rank::expect_code(parc_write(parc, 1, tag, &number, sizeof number), PARC_OK, "write");
      continue;
    }
    rank::expect_code(parc_iprobe(parc, &nobodys, &status), 0, "a look for nobody's message");
    rank::expect_code(parc_read(parc, 0, later, &number, sizeof number, nullptr), PARC_OK, "read");
    for (const parc_envelope& wanted : {any, writers})
      rank::expect_code(parc_iprobe(parc, &wanted, &status), 1, "a look for what came before");
    rank::expect_code(parc_read(parc, 0, earlier, &number, sizeof number, nullptr), PARC_OK, "read");
    rank::expect(number == round, "message %d came as number %d", number, round);
  }
}

} // namespace

int main() {
  const char* const number = std::getenv("PARC_RANK");
  if (number != nullptr && std::strcmp(number, "1") == 0) usleep(300'000); // messages come before it is there
  parc_context* parc = rank::open();
  for (const bool by_name : {false, true}) only_look(parc, by_name);
  if (rank::number == 0)
    write_all(parc);
  else
    read_all(parc);
  look_back(parc);
  rank::expect_code(parc_barrier(parc), PARC_OK, "barrier");
  rank::expect_code(parc_close(parc), PARC_OK, "close");
}
