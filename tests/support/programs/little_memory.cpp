// SPDX-License-Identifier: BSD-3-Clause
// Two ranks that may map little more than what they have.
//   exchange   each reads and writes much more than that, the reads first: all of it arrives.
//   anybody    the same with reads of any source.
//   looks      rank 0 reads two messages, of which it has memory for one, and never waits.
//   too_much   rank 0 reads a message for which there can be no memory: its read fails, and the next is
//   right.
//   in_place   the same where it needs none: both come.
#include "tests/support/programs/rank.hpp"

#include <algorithm>
#include <cstring>
#include <fstream>
#include <sys/resource.h>
#include <unistd.h>
#include <vector>

namespace {

constexpr std::size_t bytes = std::size_t{4} << 20, messages = 24, too_much = std::size_t{256} << 20;
constexpr int tag_long = 100, tag_short = 101;

rlim_t address_space() {
  std::ifstream sizes("/proc/self/statm");
  rlim_t pages = 0;
  sizes >> pages;
  return pages * static_cast<rlim_t>(getpagesize());
}

void limit_memory(rlim_t more) {
  const rlimit few{address_space() + more, RLIM_INFINITY};
  rank::expect(setrlimit(RLIMIT_AS, &few) == 0, "setrlimit");
}

std::uint64_t number_of(int from, std::size_t message) {
  return message * 2 + static_cast<std::uint64_t>(from);
}

void exchange(parc_context* parc, bool anybody) {
  const int other = 1 - rank::number, source = anybody ? PARC_ANY_SOURCE : other;
  std::vector<std::vector<char>> in(messages, std::vector<char>(bytes)), out = in;
  for (std::size_t i = 0; i < messages; ++i) rank::fill(out[i].data(), bytes, number_of(rank::number, i));
  rank::expect(parc_barrier(parc) == PARC_OK, "parc_barrier");
  limit_memory(24 << 20);
  std::vector<parc_op> reads(messages), all;
  for (std::size_t i = 0; i < messages; ++i) {
    reads[i] = parc_initread(parc, source, static_cast<int>(i), in[i].data(), bytes);
    rank::expect(reads[i] > 0, "parc_initread");
    all.push_back(reads[i]);
  }
  for (std::size_t i = 0; i < messages; ++i) {
    parc_op write = PARC_OP_NULL;
    while ((write = parc_initwrite(parc, other, static_cast<int>(i), out[i].data(), bytes)) == PARC_EAGAIN) {
      int index = -1;
      rank::expect(parc_waitany(parc, static_cast<int>(all.size()), all.data(), &index, nullptr) == PARC_OK,
                   "parc_waitany");
      if (index < 0) usleep(1000); // all that is left are copies of writes, which the other is to read
    }
    rank::expect(write > 0, "parc_initwrite");
    all.push_back(write);
  }
  rank::expect(parc_waitall(parc, static_cast<int>(all.size()), all.data(), nullptr) == PARC_OK,
               "parc_waitall");
  for (std::size_t i = 0; i < messages; ++i)
    rank::expect(rank::filled(in[i].data(), bytes, number_of(other, i)), "message %zu", i);
}

void only_look(parc_context* parc) {
  if (rank::number == 1) {
    const std::vector<char> out(bytes, 'x');
    for (int i = 0; i < 2; ++i)
      rank::expect(parc_write(parc, 0, i, out.data(), bytes) == PARC_OK, "parc_write");
    return;
  }
  std::vector<std::vector<char>> in(2, std::vector<char>(bytes));
  limit_memory(bytes + bytes / 2);
  parc_op reads[2];
  for (int i = 0; i < 2; ++i) {
    reads[i] = parc_initread(parc, 1, i, in[static_cast<std::size_t>(i)].data(), bytes);
    rank::expect(reads[i] > 0, "parc_initread");
  }
  for (const parc_op read : reads) {
    while (parc_done(parc, read) == 0) usleep(100);
    parc_status status{};
    rank::expect(parc_test(parc, read, &status) == 1 && status.length == bytes, "parc_test");
  }
  for (const auto& each : in) rank::expect(each.front() == 'x' && each.back() == 'x', "the bytes");
}

void read_too_much(parc_context* parc, bool needs_memory) {
  if (rank::number == 1) {
    std::vector<char> out(too_much, 'x');
    const parc_op write = parc_initwrite(parc, 0, tag_long, out.data(), out.size());
    rank::expect(write > 0, "parc_initwrite");
    rank::expect(parc_write(parc, 0, tag_short, "y", 1) == PARC_OK, "parc_write");
    rank::expect(parc_wait(parc, write, nullptr) == PARC_OK, "parc_wait");
    return;
  }
  std::vector<char> in(too_much);
  limit_memory(64 << 20);
  // It is written by then: to one that waits a neighbour's message comes without memory between.
  const parc_envelope behind_it{.peer = 1, .tag = tag_short, .ignore = 0, .data = 0};
  rank::expect(parc_probe(parc, &behind_it, nullptr) == PARC_OK, "parc_probe");
  const int code = parc_read(parc, 1, tag_long, in.data(), in.size(), nullptr);
  rank::expect_code(code, needs_memory ? PARC_ENOMEM : PARC_OK, "the long read");
  if (needs_memory)
    rank::expect(std::strstr(parc_error_detail(), "RLIMIT_AS") != nullptr, "another sentence");
  else
    rank::expect(std::all_of(in.begin(), in.end(), [](char each) { return each == 'x'; }), "the bytes");
  char byte = 0;
  rank::expect(parc_read(parc, 1, tag_short, &byte, 1, nullptr) == PARC_OK && byte == 'y', "the short read");
}

} // namespace

int main(int, char** argv) {
  parc_context* const parc = rank::open();
  if (std::strcmp(argv[1], "too_much") == 0)
    read_too_much(parc, true);
  else if (std::strcmp(argv[1], "in_place") == 0)
    read_too_much(parc, false);
  else if (std::strcmp(argv[1], "looks") == 0)
    only_look(parc);
  else
    exchange(parc, std::strcmp(argv[1], "anybody") == 0);
  rank::expect(parc_close(parc) == PARC_OK, "parc_close");
}
