// SPDX-License-Identifier: BSD-3-Clause
// Rank 0 may map little more when the others, some of whose letterboxes lie in another area than its own,
// send it something: its reads that this might be for fail, and its writes to them, and nobody waits for
// ever. FILE is made when it is so.
#include "tests/support/programs/rank.hpp"

#include <cstring>
#include <fstream>
#include <sys/resource.h>
#include <unistd.h>

namespace {

constexpr int tag = 1, tag_go = 2;

rlim_t address_space() {
  std::ifstream sizes("/proc/self/statm");
  rlim_t pages = 0;
  sizes >> pages;
  return pages * static_cast<rlim_t>(getpagesize());
}

void expect_no_room(int code, const char* what) {
  rank::expect_code(code, PARC_ENOMEM, what);
  rank::expect(std::strstr(parc_error_detail(), "RLIMIT_AS") != nullptr, "another sentence");
}

void read_without_room(parc_context* parc, const char* file) {
  rank::expect(parc_alloc(parc, 1000) != nullptr, "parc_alloc"); // the arena is there
  const rlimit few{address_space() + (32 << 20), RLIM_INFINITY};
  rank::expect(setrlimit(RLIMIT_AS, &few) == 0, "setrlimit");
  const int ranks = parc_size(parc);
  int unreached = 0;
  for (int to = 1; to < ranks; ++to) {
    const int code = parc_write(parc, to, tag_go, nullptr, 0);
    if (code == PARC_OK) continue;
    ++unreached;
    expect_no_room(code, "write");
  }
  rank::expect(unreached != 0, "all were reached");
  rank::expect(std::ofstream(file).good(), "%s", file);
  int unheard = 0;
  for (int from = 1; from < ranks; ++from) {
    char byte = 0;
    const int code = parc_read(parc, from, tag, &byte, 1, nullptr);
    if (code == PARC_OK) continue;
    ++unheard;
    expect_no_room(code, "read");
  }
  rank::expect(unheard != 0, "all were heard");
}

} // namespace

int main(int, char** argv) {
  parc_context* const parc = rank::open();
  if (rank::number == 0) return read_without_room(parc, argv[1]), 0;
  while (access(argv[1], F_OK) != 0) usleep(1000);
  const int code = parc_write(parc, 0, tag, "x", 1); // it may have left
  if (code != PARC_OK) rank::expect_code(code, PARC_EPEER, "write");
}
