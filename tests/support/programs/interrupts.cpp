// SPDX-License-Identifier: BSD-3-Clause
// Two ranks of one host, where senders interrupt receivers (local = signal). "in_time": rank 1 posts a read
// of a long message and then sits in a system call, which goes on when another thread has seen the message's
// bytes. "late": its read is posted when the message has been announced. It then says so, and both stay.
#include "tests/support/programs/rank.hpp"

#include <atomic>
#include <cstring>
#include <sched.h>
#include <thread>
#include <unistd.h>

namespace {

constexpr int tag = 1, tag_told = 2, tag_never = 3;
constexpr std::size_t bytes = 1'000'000;

void send(parc_context* parc, unsigned char* memory, bool in_time) {
  std::memset(memory, 0xab, bytes);
  if (in_time) rank::expect_code(parc_read(parc, 1, tag_told, nullptr, 0, nullptr), PARC_OK, "read");
  const parc_op write = parc_initwrite(parc, 1, tag, memory, bytes);
  if (!in_time) rank::expect_code(parc_write(parc, 1, tag_told, nullptr, 0), PARC_OK, "write");
  rank::expect_code(parc_wait(parc, write, nullptr), PARC_OK, "wait");
}

void receive_in_time(parc_context* parc, unsigned char* memory) {
  int ends[2];
  rank::expect(pipe(ends) == 0, "pipe");
  const parc_op read_message = parc_initread(parc, 0, tag, memory, bytes);
  rank::expect_code(parc_write(parc, 0, tag_told, nullptr, 0), PARC_OK, "write");
  std::thread other([&] {
    while (std::atomic_ref(memory[bytes - 1]).load(std::memory_order_acquire) != 0xab) sched_yield();
    rank::expect(write(ends[1], "x", 1) == 1, "write to the pipe");
  });
  char byte = 0;
  const ssize_t got = read(ends[0], &byte, 1);
  rank::expect(got == 1, "a read of a pipe that was interrupted gave %ld", static_cast<long>(got));
  other.join();
  rank::expect_code(parc_wait(parc, read_message, nullptr), PARC_OK, "wait");
}

void receive_late(parc_context* parc, unsigned char* memory) {
  rank::expect_code(parc_read(parc, 0, tag_told, nullptr, 0, nullptr), PARC_OK, "read");
  rank::expect_code(parc_wait(parc, parc_initread(parc, 0, tag, memory, bytes), nullptr), PARC_OK, "wait");
}

} // namespace

int main(int argc, char** argv) {
  parc_context* const parc = rank::open();
  const bool in_time = argc > 1 && std::strcmp(argv[1], "in_time") == 0;
  auto* const memory = static_cast<unsigned char*>(parc_alloc(parc, bytes));
  rank::expect(memory != nullptr, "parc_alloc");
  if (rank::number == 0)
    send(parc, memory, in_time);
  else if (in_time)
    receive_in_time(parc, memory);
  else
    receive_late(parc, memory);
  if (rank::number == 1) rank::expect(write(STDOUT_FILENO, "done\n", 5) == 5, "write");
  (void)parc_read(parc, 1 - rank::number, tag_never, nullptr, 0, nullptr);
}
