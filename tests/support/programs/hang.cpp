// SPDX-License-Identifier: BSD-3-Clause
// Ranks that never end by themselves. `cycle`: each reads from the next one; `absent`: rank 0 reads what
// nobody writes, while the others calculate. And of two ranks, `peer`: 0 prints what it is told about 1,
// which has left; `unread N`: 1 leaves with N messages unread;
// `envelope`: with one whose tag is of another interface than parc_write.
#include "tests/support/programs/rank.hpp"

#include <string>
#include <unistd.h>

namespace {

[[noreturn]] void stay() {
  for (;;) pause();
}

void say_failure(int code) {
  rank::expect_code(code, PARC_EPEER, "the call");
  std::printf("%s\n", parc_error_detail());
}

void meet(parc_context* parc) {
  char byte = 0;
  if (rank::number == 1) {
    rank::expect_code(parc_read(parc, 0, 1, &byte, 1, nullptr), PARC_OK, "read");
    return;
  }
  rank::expect_code(parc_write(parc, 1, 1, "x", 1), PARC_OK, "write");
  say_failure(parc_read(parc, 1, 7, &byte, 1, nullptr));
  int code = PARC_OK; // of the first one nobody may know in time
  while (code == PARC_OK) code = parc_write(parc, 1, 8, "y", 1);
  say_failure(code);
  say_failure(parc_barrier(parc));
  say_failure(parc_read(parc, PARC_ANY_SOURCE, PARC_ANY_TAG, &byte, 1, nullptr));
  std::fflush(stdout);
}

} // namespace

int main(int count, char** words) {
  const std::string what = count > 1 ? words[1] : "";
  parc_context* parc = rank::open();
  const int next = (rank::number + 1) % parc_size(parc);
  char bytes[100] = {};
  if (what == "cycle") {
    std::printf("ready\n");
    std::fflush(stdout);
    (void)parc_read(parc, next, 7, bytes, sizeof bytes, nullptr);
  } else if (what == "absent") {
    std::printf("ready\n");
    std::fflush(stdout);
    if (rank::number != 0) stay();
    for (int tag = 1; tag < 12; ++tag) (void)parc_initread(parc, next, tag, bytes, 1);
    (void)parc_read(parc, next, 12, bytes, sizeof bytes, nullptr);
  } else if (what == "peer") {
    meet(parc);
  } else if (what == "envelope") {
    if (rank::number == 0) {
      const parc_envelope envelope{1, 0xffff'fffb, 0, 0};
      const iovec piece{bytes, sizeof bytes};
      rank::expect_code(parc_wait(parc, parc_initwritev(parc, &envelope, &piece, 1, 0), nullptr), PARC_OK,
                        "write");
      rank::expect_code(parc_write(parc, 1, 1, bytes, 1), PARC_OK, "write");
    } else {
      rank::expect_code(parc_read(parc, 0, 1, bytes, 1, nullptr), PARC_OK, "read");
    }
  } else if (what == "unread") {
    if (rank::number == 0) {
      for (int i = 0; i < std::stoi(words[2]); ++i)
        rank::expect_code(parc_write(parc, 1, 30 + i, bytes, sizeof bytes), PARC_OK, "write");
      rank::expect_code(parc_write(parc, 1, 1, bytes, 1), PARC_OK, "write");
    } else {
      rank::expect_code(parc_read(parc, 0, 1, bytes, 1, nullptr), PARC_OK, "read");
    }
  }
  rank::expect_code(parc_close(parc), PARC_OK, "close");
}
