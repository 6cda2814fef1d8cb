// SPDX-License-Identifier: BSD-3-Clause
// Two neighbours whose kernel reaches all their memory (cross_memory = on): what becomes of a message when
// that memory is given back.
//   leave       the writer closes its context and unmaps what nobody has read yet
//   wait        the writer's wait returns before anybody reads, and it writes over its memory
//   no_target   the reader has unmapped where it wanted the message
//   no_source   the writer has unmapped what it wanted to send
#include "tests/support/programs/rank.hpp"

#include <cstring>
#include <string_view>
#include <sys/mman.h>

namespace {

constexpr int tag = 1, tag_told = 2, tag_never = 3;
constexpr std::size_t bytes = 1'000'000;
parc_context* parc = nullptr;

unsigned char* map() {
  void* const memory = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  rank::expect(memory != MAP_FAILED, "mmap");
  return static_cast<unsigned char*>(memory);
}

void tell() {
  rank::expect_code(parc_write(parc, 1 - rank::number, tag_told, nullptr, 0), PARC_OK, "write");
}
void hear() {
  rank::expect_code(parc_read(parc, 1 - rank::number, tag_told, nullptr, 0, nullptr), PARC_OK, "read");
}
void expect_message() {
  unsigned char* const memory = map();
  rank::expect_code(parc_read(parc, 0, tag, memory, bytes, nullptr), PARC_OK, "read");
  rank::expect(rank::filled(memory, bytes, 1), "another message than was sent");
}

void write_and_leave() {
  unsigned char* const memory = map();
  rank::fill(memory, bytes, 1);
  rank::expect(parc_initwrite(parc, 1, tag, memory, bytes) > 0, "initwrite");
  rank::expect_code(parc_close(parc), PARC_OK, "close");
  munmap(memory, bytes);
}
void read_of_one_that_left() {
  rank::expect_code(parc_read(parc, 0, tag_never, nullptr, 0, nullptr), PARC_EPEER, "read");
  expect_message();
  rank::expect_code(parc_close(parc), PARC_OK, "close");
}

void write_and_wait() {
  unsigned char* const memory = map();
  rank::fill(memory, bytes, 1);
  rank::expect_code(parc_write(parc, 1, tag, memory, bytes), PARC_OK, "write");
  std::memset(memory, 0, bytes);
  tell();
  rank::expect_code(parc_close(parc), PARC_OK, "close");
}
void read_later() {
  hear();
  expect_message();
  rank::expect_code(parc_close(parc), PARC_OK, "close");
}

// Whose memory it was has no session any more, and the other one is told so.
void write_without(bool source) {
  unsigned char* const memory = map();
  rank::fill(memory, bytes, 1);
  hear();
  if (!source) munmap(memory, bytes);
  const parc_op write = parc_initwrite(parc, 1, tag, memory, bytes);
  int finished = 0;
  while (finished == 0) finished = parc_test(parc, write, nullptr);
  rank::expect_code(finished, source ? PARC_EPEER : PARC_EKERNEL, "test");
}
void read_without(bool target) {
  unsigned char* const memory = map();
  const parc_op read = parc_initread(parc, 0, tag, memory, bytes);
  if (!target) munmap(memory, bytes);
  tell();
  rank::expect_code(parc_wait(parc, read, nullptr), target ? PARC_EPEER : PARC_EKERNEL, "wait");
}

} // namespace

int main(int argc, char** argv) {
  const std::string_view how = argc > 1 ? argv[1] : "";
  parc = rank::open();
  tell(); // from here on each hears of the other by its letterbox
  hear();
  const bool writes = rank::number == 0;
  if (how == "leave") {
    writes ? write_and_leave() : read_of_one_that_left();
  } else if (how == "wait") {
    writes ? write_and_wait() : read_later();
  } else if (how == "no_target") {
    writes ? write_without(true) : read_without(false);
  } else {
    writes ? write_without(false) : read_without(true);
  }
}
