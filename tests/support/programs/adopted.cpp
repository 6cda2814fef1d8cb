// SPDX-License-Identifier: BSD-3-Clause
// Memory that was adopted and then went another way: freed and taken again at the same addresses, moved by
// realloc, cut off the heap and grown again, replaced by another mapping. Each time a message is read into
// what is there now, by a wait that is released, and every byte is compared; the segments must not pile up.
// Usage: adopted, as two ranks; rank 0 sends.
#include "tests/support/programs/rank.hpp"

#include <cstring>
#include <fstream>
#include <malloc.h>
#include <sstream>
#include <string>
#include <sys/mman.h>
#include <unistd.h>

RANK_WITHOUT_LEAK_CHECK

namespace {

constexpr std::size_t bytes = 1 << 20;
parc_context* parc = nullptr;
std::uint64_t messages = 0; // both ranks count alike

void pass(unsigned char* into, std::size_t length = bytes) {
  ++messages;
  if (rank::number == 0) {
    static auto* const out = static_cast<unsigned char*>(parc_alloc(parc, 8 * bytes));
    rank::fill(out, length, messages);
    rank::expect_code(parc_write(parc, 1, 0, out, length), PARC_OK, "write");
    return;
  }
  std::memset(into, 1, length);
  rank::expect_code(parc_read(parc, 0, 0, into, length, nullptr), PARC_OK, "read");
  rank::expect(rank::filled(into, length, messages), "wrong bytes in message %llu",
               static_cast<unsigned long long>(messages));
}

unsigned char* take(std::size_t length) {
  auto* const memory = static_cast<unsigned char*>(std::malloc(length));
  rank::expect(memory != nullptr, "no memory");
  return memory;
}

// This rank's own: beside it run its peer, and other tests. (key shmid perms size cpid lpid nattch ...)
std::size_t segments() {
  std::ifstream table("/proc/sysvipc/shm");
  std::size_t mine = 0;
  std::string line;
  std::getline(table, line);
  while (std::getline(table, line)) {
    std::istringstream fields(line);
    std::string skipped;
    long creator = 0;
    for (int i = 0; i < 4; ++i) fields >> skipped;
    rank::expect(static_cast<bool>(fields >> creator), "a line of segments without a creator: %s",
                 line.c_str());
    if (creator == getpid()) ++mine;
  }
  return mine;
}

void freed_and_taken_again() {
  std::size_t first = 0;
  for (int i = 0; i < 50; ++i) {
    unsigned char* const memory = take(bytes);
    pass(memory);
    std::free(memory);
    if (i == 1) first = segments();
  }
  rank::expect(segments() > 0, "no segments");
  // What rank 0 has written lies in copies while rank 1 is behind.
  rank::expect(rank::number == 0 || segments() <= first + 2, "%zu segments became %zu", first, segments());
}

void moved_by_realloc() {
  unsigned char* memory = take(bytes);
  pass(memory);
  memory = static_cast<unsigned char*>(std::realloc(memory, 4 * bytes));
  rank::expect(memory != nullptr, "no memory");
  if (rank::number == 1) rank::expect(rank::filled(memory, bytes, messages), "realloc lost bytes");
  std::memset(memory + bytes, 5, 3 * bytes); // past the end of what was adopted
  pass(memory, 4 * bytes);
  memory = static_cast<unsigned char*>(std::realloc(memory, bytes / 2));
  if (rank::number == 1) rank::expect(rank::filled(memory, bytes / 2, messages), "realloc lost bytes");
  pass(memory, bytes / 2);
  // Grown from what was cut short: no page of it may lie past the end of a segment.
  memory = static_cast<unsigned char*>(std::realloc(memory, 6 * bytes));
  if (rank::number == 1) rank::expect(rank::filled(memory, bytes / 2, messages), "realloc lost bytes");
  std::memset(memory + bytes / 2, 5, 6 * bytes - bytes / 2);
  pass(memory, 6 * bytes);
  std::free(memory);
}

// Down to less than a page, and up again.
void grown_from_a_page() {
  constexpr std::size_t little = 1000;
  unsigned char* memory = take(bytes);
  for (const std::size_t length : {4 * bytes, bytes / 4}) {
    pass(memory, length / 4);
    memory = static_cast<unsigned char*>(std::realloc(memory, little));
    memory = static_cast<unsigned char*>(std::realloc(memory, length));
    rank::expect(memory != nullptr, "no memory");
    if (rank::number == 1) rank::expect(rank::filled(memory, little, messages), "realloc lost bytes");
    std::memset(memory + little, 5, length - little);
    pass(memory, length);
  }
  std::free(memory);
}

void cut_off_the_heap() {
  mallopt(M_MMAP_THRESHOLD, 1 << 30);
  mallopt(M_TRIM_THRESHOLD, 0);
  for (int i = 0; i < 5; ++i) {
    unsigned char* const memory = take(4 * bytes);
    pass(memory, 3 * bytes);
    std::free(memory); // the heap shrinks
    auto* const zeros = static_cast<unsigned char*>(std::calloc(1, 4 * bytes));
    for (std::size_t at = 0; at < 4 * bytes; at += 512)
      rank::expect(zeros[at] == 0, "calloc gave other than zeros");
    std::free(zeros);
  }
}

// Another mapping at the addresses of one that was adopted: read-only data must stay that.
void replaced() {
  mallopt(M_MMAP_THRESHOLD, 128 << 10);
  unsigned char* const memory = take(bytes);
  pass(memory);
  const auto page = reinterpret_cast<std::uintptr_t>(memory) - 16 + 4096;
  std::free(memory);
  void* const other = mmap(reinterpret_cast<void*>(page), 4096, PROT_READ,
                           MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0);
  pass(take(2 * bytes));
  if (reinterpret_cast<std::uintptr_t>(other) == page) munmap(other, 4096);
}

void on_the_stack() {
  unsigned char memory[100'000];
  pass(memory, sizeof memory);
}

} // namespace

int main() {
  parc = rank::open();
  rank::expect_code(parc_set_release(parc, PARC_RELEASE_FULL), PARC_OK, "set_release");
  freed_and_taken_again();
  moved_by_realloc();
  grown_from_a_page();
  cut_off_the_heap();
  replaced();
  on_the_stack();
  rank::expect_code(parc_close(parc), PARC_OK, "close");
}
