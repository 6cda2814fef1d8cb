// SPDX-License-Identifier: BSD-3-Clause
// Two neighbours whose kernel reaches all their memory (cross_memory = on): what becomes of a message when
// that memory is given back.
//   leave       the writer closes its context and unmaps what nobody has read yet
//   wait        the writer's wait returns before anybody reads, and it writes over its memory
//   no_target   the reader has unmapped where it wanted the message
//   no_source   the writer has unmapped what it wanted to send
// Or when the kernel does not reach it any more, while the program does:
//   barriers     the pages of both are closed, and a handler opens those that are touched (a collector)
//   exchange     the same both ways at once, with several messages each
//   elsewhere    the same of a reader that waits for something else
//   untraceable  both let nobody trace them
//   refused FILE  they never did; rank 0 says "exchanged" before they leave, which they do when FILE is there
#include "tests/support/programs/rank.hpp"

#include <array>
#include <csignal>
#include <cstdint>
#include <cstring>
#include <string_view>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <unistd.h>

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

volatile std::sig_atomic_t opened = 0;

// Opens the page that was touched. What has no page dies, as far as the kernel knows, but with a status of
// its own.
extern "C" void on_fault(int, siginfo_t* info, void*) {
  constexpr std::uintptr_t page = 4096;
  auto* const at = reinterpret_cast<void*>(reinterpret_cast<std::uintptr_t>(info->si_addr) & ~(page - 1));
  if (mprotect(at, page, PROT_READ | PROT_WRITE) != 0) _exit(0);
  opened = opened + 1;
}
void handle_faults() {
  struct sigaction action {};
  action.sa_sigaction = on_fault;
  action.sa_flags = SA_SIGINFO;
  rank::expect(sigaction(SIGSEGV, &action, nullptr) == 0, "sigaction");
}
void protect(unsigned char* memory, int how) {
  rank::expect(mprotect(memory, bytes, how) == 0, "mprotect");
}

// Whose memory it was dies of it, and the other one is told so.
void write_without(bool source) {
  handle_faults();
  unsigned char* const memory = map();
  rank::fill(memory, bytes, 1);
  hear();
  if (!source) munmap(memory, bytes);
  const parc_op write = parc_initwrite(parc, 1, tag, memory, bytes);
  int finished = 0;
  while (finished == 0) finished = parc_test(parc, write, nullptr);
  rank::expect(source, "no fault");
  rank::expect_code(finished, PARC_EPEER, "test");
}
void read_without(bool target) {
  handle_faults();
  unsigned char* const memory = map();
  const parc_op read = parc_initread(parc, 0, tag, memory, bytes);
  if (!target) munmap(memory, bytes);
  tell();
  rank::expect_code(parc_wait(parc, read, nullptr), PARC_EPEER, "wait");
  rank::expect(target, "no fault");
}

void finish(parc_op operation) {
  int finished = 0;
  while (finished == 0) finished = parc_test(parc, operation, nullptr);
  rank::expect_code(finished, 1, "test");
}

// What is known of the session after all that: it is there, and its memory is copied.
void close_as_ever() {
  const int other = 1 - rank::number;
  unsigned char* const memory = map();
  if (rank::number == 0) {
    rank::fill(memory, bytes, 9);
    rank::expect_code(parc_write(parc, other, tag, memory, bytes), PARC_OK, "write");
  } else {
    rank::expect_code(parc_read(parc, other, tag, memory, bytes, nullptr), PARC_OK, "read");
    rank::expect(rank::filled(memory, bytes, 9), "another message than was sent, in the end");
  }
  rank::expect_code(parc_barrier(parc), PARC_OK, "barrier");
  rank::expect_code(parc_close(parc), PARC_OK, "close");
}

// `elsewhere`: the write is finished before the reader looks at its read.
void write_closed(bool elsewhere) {
  handle_faults();
  unsigned char* const memory = map();
  rank::fill(memory, bytes, 1);
  hear();
  protect(memory, PROT_NONE);
  finish(parc_initwrite(parc, 1, tag, memory, bytes));
  rank::expect(opened != 0, "nothing was opened");
  if (elsewhere) tell();
  close_as_ever();
}
void read_closed(bool elsewhere) {
  handle_faults();
  unsigned char* const memory = map();
  const parc_op read = parc_initread(parc, 0, tag, memory, bytes);
  protect(memory, PROT_READ);
  tell();
  if (elsewhere) hear();
  rank::expect_code(parc_wait(parc, read, nullptr), PARC_OK, "wait");
  rank::expect(rank::filled(memory, bytes, 1), "another message than was sent");
  rank::expect(opened != 0, "nothing was opened");
  close_as_ever();
}

void forbid_tracing() {
  rank::expect(prctl(PR_SET_DUMPABLE, 0) == 0, "prctl");
}

void exchange(bool traceable) {
  constexpr int messages = 8;
  handle_faults();
  std::array<unsigned char*, messages> from{}, to{};
  std::array<parc_op, 2 * messages> operations{};
  for (int i = 0; i < messages; ++i) {
    from[i] = map();
    to[i] = map();
    rank::fill(from[i], bytes, i + 10 * rank::number);
    operations[i] = parc_initread(parc, 1 - rank::number, tag, to[i], bytes);
    if (traceable) protect(to[i], PROT_READ);
    if (traceable) protect(from[i], PROT_NONE);
  }
  if (!traceable) forbid_tracing();
  tell();
  hear();
  for (int i = 0; i < messages; ++i)
    operations[messages + i] = parc_initwrite(parc, 1 - rank::number, tag, from[i], bytes);
  for (const parc_op operation : operations) finish(operation);
  for (int i = 0; i < messages; ++i)
    rank::expect(rank::filled(to[i], bytes, i + 10 * (1 - rank::number)), "another message than was sent");
  rank::expect((opened != 0) == traceable, "what was opened");
}

void exchange_and_stay(const char* file) {
  exchange(false);
  rank::expect_code(parc_barrier(parc), PARC_OK, "barrier");
  if (rank::number == 0) {
    std::puts("exchanged");
    std::fflush(stdout);
  }
  while (access(file, F_OK) != 0) usleep(1000);
}

} // namespace

int main(int argc, char** argv) {
  const std::string_view how = argc > 1 ? argv[1] : "";
  if (how == "refused") forbid_tracing();
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
  } else if (how == "barriers" || how == "elsewhere") {
    writes ? write_closed(how == "elsewhere") : read_closed(how == "elsewhere");
  } else if (how == "exchange" || how == "untraceable") {
    exchange(how == "exchange");
    close_as_ever();
  } else if (how == "refused") {
    exchange_and_stay(argv[2]);
    close_as_ever();
  } else {
    writes ? write_without(false) : read_without(true);
  }
}
