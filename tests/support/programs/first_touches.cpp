// SPDX-License-Identifier: BSD-3-Clause
// What a trace of pages keeps closed until it is touched: rank 0 gets from rank 1, or reads from it, and sees
// what it would see without a trace.
// Usage: first_touches CASE [KIND]: CASE is a function below, KIND says where the buffer of a sweep lies:
// arena, heap, bss.
#include "tests/support/programs/rank.hpp"

#include <array>
#include <csignal>
#include <cstring>
#include <string_view>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>
#include <vector>

RANK_WITHOUT_LEAK_CHECK

namespace {

constexpr std::uint64_t window = 7;
constexpr std::size_t page = 4096, bytes = 256 * page;
parc_context* parc = nullptr;
unsigned char in_bss[bytes + page];
constexpr std::size_t few = 16 * page;
alignas(page) std::array<std::array<unsigned char, few>, 40> many; // more than are adopted at a time

unsigned char* memory(std::string_view kind) {
  if (kind == "bss") return in_bss;
  if (kind == "heap") return static_cast<unsigned char*>(std::malloc(bytes));
  return static_cast<unsigned char*>(parc_alloc(parc, bytes));
}

void get(unsigned char* to, std::size_t length, std::size_t offset = 0) {
  const parc_place from{1, window, offset};
  rank::expect_code(parc_get(parc, &from, to, length), PARC_OK, "parc_get");
}

void expect_bytes(const unsigned char* got, std::size_t length, std::size_t offset) {
  rank::expect(rank::filled(got, length, 1, offset), "%zu bytes at %zu are wrong", length, offset);
}

void sweep(std::string_view how, unsigned char* in) {
  get(in, bytes);
  if (how == "up")
    for (std::size_t i = 0; i < bytes; i += page) expect_bytes(in + i, page, i);
  if (how == "down") // byte by byte, as its pages end elsewhere
    for (std::size_t i = bytes; i > 0; --i) expect_bytes(in + i - 1, 1, i - 1);
  if (how == "middle") {
    for (std::size_t i = bytes / 2; i < bytes; i += page) expect_bytes(in + i, page, i);
    for (std::size_t i = 0; i < bytes / 2; i += page) expect_bytes(in + i, page, i);
  }
}

// Parts of it, of no page and of any length, are used by calls, exposed, read over, written by the system.
void calls(unsigned char* in) {
  get(in, bytes);
  rank::expect_code(parc_write(parc, 1, 6, in + 100, 0), PARC_OK, "parc_write of nothing");
  rank::expect_code(parc_write(parc, 1, 6, in + 100, 1000), PARC_OK, "parc_write of a part");
  rank::expect_code(parc_write(parc, 1, 6, in + 3 * page - 1, 5 * page + 2), PARC_OK, "parc_write");
  rank::expect_code(parc_expose(parc, 8, in + 20 * page + 16, 2 * page, PARC_MAY_GET), PARC_OK,
                    "parc_expose");
  rank::expect_code(parc_unexpose(parc, 8), PARC_OK, "parc_unexpose");
  int ends[2];
  rank::expect(pipe(ends) == 0, "pipe");
  rank::expect(write(ends[1], in + 30 * page + 5, 2 * page) == static_cast<ssize_t>(2 * page), "write");
  std::vector<unsigned char> through(2 * page);
  rank::expect(read(ends[0], through.data(), 2 * page) == static_cast<ssize_t>(2 * page), "read");
  expect_bytes(through.data(), 2 * page, 30 * page + 5);
  get(in + 40 * page + 8, 3 * page, 40 * page + 8); // over itself
  const pid_t child = fork();
  if (child == 0) _exit(rank::filled(in, bytes, 1) ? 0 : 1);
  int status = -1;
  rank::expect(waitpid(child, &status, 0) == child && status == 0, "a child sees status %d", status);
  expect_bytes(in, bytes, 0);
}

void answer_calls() {
  std::vector<unsigned char> got(5 * page + 2);
  rank::expect_code(parc_read(parc, 0, 6, got.data(), got.size(), nullptr), PARC_OK, "parc_read of nothing");
  rank::expect_code(parc_read(parc, 0, 6, got.data(), got.size(), nullptr), PARC_OK, "parc_read of a part");
  expect_bytes(got.data(), 1000, 100);
  rank::expect_code(parc_read(parc, 0, 6, got.data(), got.size(), nullptr), PARC_OK, "parc_read");
  expect_bytes(got.data(), got.size(), 3 * page - 1);
}

// Of a message that is shorter than its buffer the end of that is the program's own.
void short_message(unsigned char* in) {
  std::memset(in, 9, bytes);
  parc_status status{};
  rank::expect_code(parc_read(parc, 1, 5, in, bytes, &status), PARC_OK, "parc_read");
  rank::expect(status.length == 3 * page + 7, "%llu bytes", static_cast<unsigned long long>(status.length));
  for (std::size_t i = bytes; i-- > status.length;) rank::expect(in[i] == 9, "byte %zu is %d", i, in[i]);
  expect_bytes(in, status.length, 0);
}

// Others are adopted in the place of those that nobody has touched yet.
void given_back() {
  for (int round = 0; round < 2; ++round) {
    for (auto& each : many) get(each.data(), few);
    for (const auto& each : many) expect_bytes(each.data(), few, 0);
  }
  for (int i = 0; i < 50; ++i) get(many[0].data(), few); // the last that was used
  for (auto& each : many) get(each.data(), few);
  for (const auto& each : many) expect_bytes(each.data(), few, 0);
}

parc_op in_handler = PARC_OP_NULL;
volatile sig_atomic_t tested = 0;

void test(int) {
  if (tested == 0) tested = static_cast<sig_atomic_t>(parc_test(parc, in_handler, nullptr));
}

// parc_test may be called there, whatever it interrupts.
void handler(unsigned char* in) {
  auto* const other = static_cast<unsigned char*>(parc_alloc(parc, bytes));
  const parc_place from{1, window, 0};
  const parc_op here = parc_initget(parc, &from, in, bytes, PARC_EARLY);
  in_handler = parc_initget(parc, &from, other, bytes, PARC_EARLY);
  while (parc_done(parc, here) == 0 || parc_done(parc, in_handler) == 0) usleep(100);
  std::signal(SIGALRM, test);
  const itimerval often{{0, 50}, {0, 50}}, never{};
  setitimer(ITIMER_REAL, &often, nullptr);
  rank::expect_code(parc_test(parc, here, nullptr), 1, "parc_test");
  while (tested == 0) get(in, page);
  setitimer(ITIMER_REAL, &never, nullptr);
  rank::expect_code(static_cast<int>(tested), 1, "parc_test in a handler");
  expect_bytes(in, bytes, 0);
  expect_bytes(other, bytes, 0);
}

} // namespace

int main(int argc, char** argv) {
  parc = rank::open();
  rank::expect(argc > 1, "usage: first_touches CASE [KIND]");
  const std::string_view what = argv[1], kind = argc > 2 ? argv[2] : "arena";
  auto* const own = static_cast<unsigned char*>(parc_alloc(parc, bytes));
  rank::fill(own, bytes, 1);
  rank::expect_code(parc_expose(parc, window, own, bytes, PARC_MAY_GET), PARC_OK, "parc_expose");
  rank::expect_code(parc_barrier(parc), PARC_OK, "parc_barrier");
  if (rank::number == 0) {
    unsigned char* const in = memory(kind);
    if (what == "calls")
      calls(in);
    else if (what == "short")
      short_message(in);
    else if (what == "given-back")
      given_back();
    else if (what == "handler")
      handler(in);
    else
      sweep(what, in);
  } else {
    if (what == "calls") answer_calls();
    if (what == "short") rank::expect_code(parc_write(parc, 0, 5, own, 3 * page + 7), PARC_OK, "parc_write");
  }
  rank::expect_code(parc_barrier(parc), PARC_OK, "the last barrier");
  rank::expect_code(parc_close(parc), PARC_OK, "parc_close");
}
