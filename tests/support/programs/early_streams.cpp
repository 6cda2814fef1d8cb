// SPDX-License-Identifier: BSD-3-Clause
// A message of 16 MiB from rank 0 to rank 1 over a link one of whose streams is silent. Rank 0 sends when
// FILE is there. Rank 1's wait is released before, which it says; then it finds out that 1 MiB of it can be
// read between pages that have not come, and in the end that all bytes are right.
// Usage: early_streams FILE
#include "tests/support/programs/rank.hpp"

#include <cstring>
#include <unistd.h>

namespace {

constexpr std::size_t page = 4096, bytes = 16 << 20, least = (1 << 20) / page;

// Of a buffer that has not come whole.
struct Readable {
  std::size_t between = 0; // pages that can be read, between others that cannot
  std::size_t last = 0;    // of those
  bool all = true;
};

Readable readable(const unsigned char* in) {
  std::FILE* const maps = std::fopen("/proc/self/maps", "r");
  rank::expect(maps != nullptr, "cannot read /proc/self/maps");
  const auto begin = reinterpret_cast<std::uintptr_t>(in), end = begin + bytes;
  unsigned long low = 0, high = 0;
  char access[5];
  Readable found;
  std::size_t here = 0; // since the last one that cannot
  while (std::fscanf(maps, "%lx-%lx %4s%*[^\n]", &low, &high, access) == 3) {
    if (high <= begin || low >= end) continue;
    if (access[0] == 'r') {
      here += (high - low) / page;
      continue;
    }
    if (!found.all && here != 0) {
      found.between += here;
      found.last = (low - begin) / page - 1;
    }
    found.all = false;
    here = 0;
  }
  std::fclose(maps);
  return found;
}

void read(parc_context* parc) {
  auto* const in = static_cast<unsigned char*>(parc_alloc(parc, bytes));
  rank::expect(in != nullptr, "no memory");
  std::memset(in, 0, bytes);
  rank::expect_code(parc_read(parc, 0, 0, in, bytes, nullptr), PARC_OK, "read");
  std::printf("released\n");
  std::fflush(stdout);
  Readable now;
  do {
    usleep(1000);
    parc_release_counts counts; // calls open what has come
    rank::expect_code(parc_get_release_counts(parc, &counts), PARC_OK, "counts");
    now = readable(in);
    rank::expect(!now.all, "nothing could be read between what had not come");
  } while (now.between < least);
  const std::size_t at = now.last * page;
  rank::expect(rank::filled(in + at, page, 7, at), "wrong bytes between what had not come");
  rank::expect(rank::filled(in, bytes, 7), "wrong bytes");
}

void write(parc_context* parc, const char* file) {
  auto* const out = static_cast<unsigned char*>(parc_alloc(parc, bytes));
  rank::expect(out != nullptr, "no memory");
  rank::fill(out, bytes, 7);
  while (access(file, F_OK) != 0) usleep(1000);
  rank::expect_code(parc_write(parc, 1, 0, out, bytes), PARC_OK, "write");
}

} // namespace

int main(int argc, char** argv) {
  if (argc != 2) return 2;
  parc_context* const parc = rank::open();
  rank::expect_code(parc_set_release(parc, PARC_RELEASE_FULL), PARC_OK, "set_release");
  if (rank::number == 0)
    write(parc, argv[1]);
  else
    read(parc);
  rank::expect_code(parc_close(parc), PARC_OK, "close");
}
