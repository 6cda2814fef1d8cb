// SPDX-License-Identifier: BSD-3-Clause
// Waits for writes that are released early, one case at a time: rank 1 writes, and rank 0 reads when it is
// told to, so that most of the message is not acknowledged while rank 1 does with its buffer what it likes.
// What rank 0 reads is what was there when the write began.
// Usage: early_writes CASE FILE [KIND]: CASE is a function below, FILE is one that a case may make, KIND says
// where rank 1's buffer lies: arena, chunk (that malloc mapped), bss.
#include "tests/support/programs/rank.hpp"

#include <csignal>
#include <cstring>
#include <fcntl.h>
#include <fstream>
#include <string>
#include <sys/time.h>
#include <sys/wait.h>
#include <thread>
#include <unistd.h>

namespace {

constexpr std::size_t page = 4096, bytes = 2048 * page;
constexpr int message_tag = 0, go_tag = 1, back_tag = 2;
parc_context* parc = nullptr;
const char* file = nullptr;
std::string kind = "arena";
alignas(page) unsigned char in_bss[bytes + 2 * page];
unsigned char* buffer = nullptr; // page aligned

unsigned char* memory() {
  if (kind == "bss") return in_bss + page;
  auto* const block = static_cast<unsigned char*>(kind == "arena" ? parc_alloc(parc, bytes + 2 * page)
                                                                  : std::malloc(bytes + 3 * page));
  rank::expect(block != nullptr, "no memory");
  const auto address = reinterpret_cast<std::uintptr_t>(block) + page;
  return reinterpret_cast<unsigned char*>((address + page - 1) / page * page);
}

parc_release_counts counts() {
  parc_release_counts now;
  rank::expect_code(parc_get_release_counts(parc, &now), PARC_OK, "counts");
  return now;
}

// The page at this address, as the system has it: its access, "r--s" say.
std::string access_at(const void* memory) {
  std::ifstream maps("/proc/self/maps");
  const auto address = reinterpret_cast<std::uintptr_t>(memory);
  for (std::string line; std::getline(maps, line);) {
    char* end = nullptr;
    const auto low = std::strtoull(line.c_str(), &end, 16), high = std::strtoull(end + 1, &end, 16);
    if (address >= low && address < high) return std::string(end + 1, 4);
  }
  return "nothing";
}

void tell_reader() {
  rank::expect_code(parc_write(parc, 0, go_tag, nullptr, 0), PARC_OK, "go");
}

// A write whose wait has returned although rank 0 has not read.
void write_released(unsigned flags = 0) {
  rank::fill(buffer, bytes, 7);
  const iovec whole{buffer, bytes};
  const parc_envelope to = parc_envelope_of(0, 0, message_tag);
  rank::expect_code(parc_wait(parc, parc_initwritev(parc, &to, &whole, 1, flags | PARC_EARLY), nullptr),
                    PARC_OK, "write");
  if (kind != "arena") return; // copied when it began
  rank::expect(counts().released == 1, "the wait for the write was not released");
  rank::expect(access_at(buffer + bytes / 2) == "r--s", "the middle of its buffer is %s",
               access_at(buffer + bytes / 2).c_str());
}

void store() {
  write_released();
  std::memset(buffer, 0, bytes);
  if (kind == "arena") rank::expect(access_at(buffer + bytes / 2) == "rw-s", "it was not opened by a store");
  tell_reader();
}

void store_downwards() {
  write_released(PARC_FROM_END);
  for (std::size_t i = bytes; i-- > 0;) buffer[i] = 0;
  tell_reader();
}

// Loads are no business of a write.
void load() {
  write_released();
  rank::expect(rank::filled(buffer, bytes, 7), "its own bytes are others");
  rank::expect(counts().faults == 0, "a load waited");
  tell_reader();
  rank::expect_code(parc_settle(parc, nullptr, 0), PARC_OK, "settle");
  if (kind == "arena") rank::expect(access_at(buffer + bytes / 2) == "rw-s", "settling did not open it");
}

// It may be written again, and what is read over it comes after it has been sent.
void again_and_over() {
  write_released();
  parc_op again = parc_initwrite(parc, 0, message_tag, buffer, bytes);
  parc_op over = parc_initread(parc, 0, back_tag, buffer, bytes);
  tell_reader();
  rank::expect_code(parc_wait(parc, again, nullptr), PARC_OK, "second write");
  rank::expect_code(parc_wait(parc, over, nullptr), PARC_OK, "read");
  rank::expect(rank::filled(buffer, bytes, 8), "not what was read");
}

void with_threads() {
  write_released();
  std::thread low([] { std::memset(buffer, 0, bytes / 2); });
  std::thread high([] { std::memset(buffer + bytes / 2, 0, bytes / 2); });
  std::memset(buffer + bytes / 4, 0, bytes / 2);
  low.join();
  high.join();
  tell_reader();
}

void with_fork() {
  write_released();
  const pid_t child = fork();
  if (child == 0) {
    if (!rank::filled(buffer, bytes, 7)) _exit(1);
    if (kind != "arena") std::memset(buffer, 0, bytes); // the arena is shared with a child
    _exit(0);
  }
  int status = 0;
  rank::expect(waitpid(child, &status, 0) == child && status == 0, "the child ended with %d", status);
  tell_reader();
}

// While this thread is in a wait.
void on_alarm(int) {
  std::memset(buffer, 0, bytes);
  close(open(file, O_CREAT | O_WRONLY, 0600));
}

void from_handler() {
  write_released();
  tell_reader();
  std::signal(SIGALRM, on_alarm);
  const itimerval soon{{0, 0}, {0, 20'000}};
  setitimer(ITIMER_REAL, &soon, nullptr);
  unsigned char none[16];
  parc_status status;
  rank::expect_code(parc_read(parc, 0, back_tag, none, sizeof none, &status), PARC_OK, "read");
}

void closed() {
  write_released();
  tell_reader();
  rank::expect_code(parc_close(parc), PARC_OK, "close");
  if (kind != "arena") std::memset(buffer, 0, bytes);
  std::exit(0);
}

// More of them than the first block of the tables has places.
constexpr int many = 1100;
constexpr std::size_t part = 16 * page;

void full_table() {
  rank::fill(buffer, part, 7);
  tell_reader();
  const iovec piece{buffer, part};
  const parc_envelope to = parc_envelope_of(0, 0, message_tag);
  for (int i = 0; i < many; ++i)
    rank::expect_code(parc_wait(parc, parc_initwritev(parc, &to, &piece, 1, PARC_EARLY), nullptr), PARC_OK,
                      "write");
}

// A status beside the buffer, on a page that the same wait might guard.
void status_on_page() {
  rank::fill(buffer, bytes, 7);
  const iovec piece{buffer, bytes};
  auto* const status = reinterpret_cast<parc_status*>(buffer + bytes);
  const parc_envelope to = parc_envelope_of(0, 0, message_tag);
  parc_op write = parc_initwritev(parc, &to, &piece, 1, PARC_EARLY);
  tell_reader();
  int index = -1;
  rank::expect_code(parc_waitany(parc, 1, &write, &index, status), PARC_OK, "waitany");
  rank::expect(index == 0 && status->error == PARC_OK, "a strange status");
}

// Without room for a copy a store could have to wait for rank 0's program: then the wait does.
void without_room() {
  rank::expect_code(parc_set_copy_room(parc, 0), PARC_OK, "set_copy_room");
  rank::fill(buffer, bytes, 7);
  tell_reader();
  rank::expect_code(parc_write(parc, 0, message_tag, buffer, bytes), PARC_OK, "write");
  rank::expect(counts().released == 0, "it was released without room for a copy");
}

void write_as(const std::string& how) {
  if (how == "store") store();
  if (how == "store-downwards") store_downwards();
  if (how == "load") load();
  if (how == "again") again_and_over();
  if (how == "threads") with_threads();
  if (how == "fork") with_fork();
  if (how == "handler") from_handler();
  if (how == "closed") closed();
  if (how == "no-room") without_room();
  if (how == "table") full_table();
  if (how == "any") status_on_page();
}

void read_as(const std::string& how) {
  rank::expect_code(parc_read(parc, 1, go_tag, nullptr, 0, nullptr), PARC_OK, "go");
  while (how == "handler" && access(file, F_OK) != 0) usleep(1000);
  const std::size_t length = how == "table" ? part : bytes;
  for (int i = 0; i < (how == "again" ? 2 : how == "table" ? many : 1); ++i) {
    std::memset(buffer, 1, length);
    rank::expect_code(parc_read(parc, 1, message_tag, buffer, length, nullptr), PARC_OK, "read");
    rank::expect(rank::filled(buffer, length, 7), "the message has bytes of a later store");
  }
  rank::fill(buffer, bytes, 8);
  if (how == "again") rank::expect_code(parc_write(parc, 1, back_tag, buffer, bytes), PARC_OK, "back");
  if (how == "handler") rank::expect_code(parc_write(parc, 1, back_tag, buffer, 16), PARC_OK, "back");
}

} // namespace

int main(int argc, char** argv) {
  if (argc != 3 && argc != 4) return 2;
  file = argv[2];
  parc = rank::open();
  if (argc == 4 && rank::number == 1) kind = argv[3];
  buffer = memory();
  if (rank::number == 1) {
    rank::expect_code(parc_set_release(parc, PARC_RELEASE_FULL), PARC_OK, "set_release");
    write_as(argv[1]);
  } else {
    read_as(argv[1]);
  }
  rank::expect_code(parc_close(parc), PARC_OK, "close");
}
