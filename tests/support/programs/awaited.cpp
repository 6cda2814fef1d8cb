// SPDX-License-Identifier: BSD-3-Clause
// Two neighbours, of which rank 1 waits for long messages of memory that the kernel has not mapped: they come
// in fragments.
//   waits      in blocking reads, and in waits for reads of one source and of any
//   looks      in tests and completions that do not wait
//   both_ways  while each writes to the other
//   pieces     in a list of pieces, and written from another
//   truncated  with a buffer that is too short
//   stopped    and is stopped in the middle: the write ends all the same, and the message is right later
//   leaves     and computes from the middle on
//   gathers    rank 0 of any number, while all others write to it and end
// With another word behind it stays.
#include "tests/support/programs/rank.hpp"

#include <array>
#include <csignal>
#include <cstring>
#include <string_view>
#include <time.h>
#include <unistd.h>
#include <vector>

namespace {

using Bytes = std::vector<unsigned char>;
constexpr int tag = 1, tag_told = 2;
constexpr std::array<std::size_t, 5> lengths{65'537, 98'304, 1'048'576, 1'500'001, 70'000};
parc_context* parc = nullptr;
int other = 0;

void send(std::uint64_t message, std::size_t length) {
  Bytes bytes(length);
  rank::fill(bytes.data(), length, message);
  rank::expect_code(parc_write(parc, other, tag, bytes.data(), length), PARC_OK, "write");
}
void check(const Bytes& bytes, std::uint64_t message, const parc_status& status) {
  rank::expect(status.source == other && status.tag == tag && status.length == bytes.size(),
               "the status of message %d", static_cast<int>(message));
  rank::expect(rank::filled(bytes.data(), bytes.size(), message), "the bytes of message %d",
               static_cast<int>(message));
}
parc_op start(Bytes& bytes, int from) {
  const parc_op read = parc_initread(parc, from, tag, bytes.data(), bytes.size());
  rank::expect(read > 0, "initread");
  return read;
}

// Messages of all lengths, of which receive(number, bytes) reads one.
template <class Receive> void follow(const Receive& receive) {
  for (std::uint64_t i = 0; i < 25; ++i) {
    Bytes bytes(lengths[i % lengths.size()]);
    if (rank::number == 0)
      send(i, bytes.size());
    else
      check(bytes, i, receive(i, bytes));
  }
}

void waits() {
  follow([](std::uint64_t i, Bytes& bytes) {
    parc_status status;
    if (i % 3 == 0)
      rank::expect_code(parc_read(parc, 0, tag, bytes.data(), bytes.size(), &status), PARC_OK, "read");
    else
      rank::expect_code(parc_wait(parc, start(bytes, i % 3 == 1 ? 0 : PARC_ANY_SOURCE), &status), PARC_OK,
                        "wait");
    return status;
  });
}

void looks() {
  follow([](std::uint64_t i, Bytes& bytes) {
    parc_status status;
    if (i % 2 == 0) {
      const parc_op read = start(bytes, 0);
      while (parc_test(parc, read, &status) == 0) {
      }
      return status;
    }
    const iovec piece{bytes.data(), bytes.size()};
    const parc_envelope envelope{.peer = 0, .tag = tag, .ignore = 0, .data = 0};
    rank::expect(parc_initreadv(parc, &envelope, &piece, 1, PARC_QUEUED) > 0, "initreadv");
    parc_completion done;
    while (parc_completions(parc, &done, 1, 0) == 0) {
    }
    return done.status;
  });
}

void both_ways() {
  constexpr std::size_t count = 8;
  for (std::uint64_t round = 0; round < 5; ++round) {
    std::array<Bytes, count> in, out;
    std::array<parc_op, 2 * count> operations{};
    std::array<parc_status, 2 * count> statuses{};
    for (std::size_t i = 0; i < count; ++i) {
      const std::size_t length = lengths[(i + round) % lengths.size()];
      in[i].resize(length);
      out[i].resize(length);
      rank::fill(out[i].data(), length, i + static_cast<std::uint64_t>(rank::number) * count);
      operations[i] = start(in[i], other);
    }
    rank::expect_code(parc_barrier(parc), PARC_OK, "barrier");
    for (std::size_t i = 0; i < count; ++i)
      operations[count + i] = parc_initwrite(parc, other, tag, out[i].data(), out[i].size());
    rank::expect_code(
        parc_waitall(parc, static_cast<int>(operations.size()), operations.data(), statuses.data()), PARC_OK,
        "waitall");
    for (std::size_t i = 0; i < count; ++i)
      check(in[i], i + static_cast<std::uint64_t>(other) * count, statuses[i]);
  }
}

void pieces() {
  for (std::uint64_t i = 0; i < 20; ++i) {
    const std::size_t length = lengths[i % lengths.size()], first = i * 1'000 + 1, second = length / 2;
    Bytes bytes(length);
    if (rank::number == 0) rank::fill(bytes.data(), length, i);
    const std::size_t border = rank::number == 0 ? first : second;
    const std::array<iovec, 3> list{
        {{bytes.data(), border}, {nullptr, 0}, {bytes.data() + border, length - border}}};
    const parc_envelope envelope{.peer = other, .tag = tag, .ignore = 0, .data = 0};
    const parc_op operation = rank::number == 0 ? parc_initwritev(parc, &envelope, list.data(), 3, 0)
                                                : parc_initreadv(parc, &envelope, list.data(), 3, 0);
    parc_status status;
    rank::expect_code(parc_wait(parc, operation, &status), PARC_OK, "wait");
    if (rank::number == 1) check(bytes, i, status);
  }
}

void truncated() {
  for (std::uint64_t i = 0; i < 10; ++i) {
    if (rank::number == 0) {
      send(i, 1'000'000);
      continue;
    }
    Bytes bytes(300'000);
    parc_status status;
    rank::expect_code(parc_wait(parc, start(bytes, 0), &status), PARC_ETRUNCATE, "wait");
    rank::expect(status.length == 1'000'000 && rank::filled(bytes.data(), bytes.size(), i), "its beginning");
  }
}

// It is seen to wait, and does not come back.
void stopped() {
  constexpr std::size_t length = 20'000'000;
  if (rank::number == 1) {
    const pid_t self = getpid();
    rank::expect_code(parc_write(parc, 0, tag_told, &self, sizeof self), PARC_OK, "write");
    Bytes bytes(length);
    parc_status status;
    rank::expect_code(parc_wait(parc, start(bytes, 0), &status), PARC_OK, "wait");
    return check(bytes, 7, status);
  }
  pid_t reader = 0;
  rank::expect_code(parc_read(parc, 1, tag_told, &reader, sizeof reader, nullptr), PARC_OK, "read");
  timespec while_it_begins{.tv_sec = 0, .tv_nsec = 300'000'000};
  nanosleep(&while_it_begins, nullptr);
  kill(reader, SIGSTOP);
  send(7, length);
  kill(reader, SIGCONT);
}

void leaves() {
  for (std::uint64_t i = 0; i < 20; ++i) {
    Bytes bytes(1'500'001);
    if (rank::number == 0) {
      rank::expect_code(parc_write(parc, 1, tag_told, nullptr, 0), PARC_OK, "write");
      send(i, bytes.size());
      continue;
    }
    int which = -1;
    std::array<parc_op, 2> reads{start(bytes, 0), parc_initread(parc, 0, tag_told, nullptr, 0)};
    parc_status status, told;
    rank::expect_code(parc_waitany(parc, 2, reads.data(), &which, &told), PARC_OK, "waitany");
    timespec computes{.tv_sec = 0, .tv_nsec = static_cast<long>(i % 5) * 1'000'000};
    nanosleep(&computes, nullptr);
    rank::expect_code(parc_wait(parc, reads[which == 0 ? 1 : 0], &status), PARC_OK, "wait");
    check(bytes, i, which == 0 ? told : status);
  }
}

// Their last fragments are published when they have gone.
int gather() {
  const int size = parc_size(parc);
  constexpr std::size_t length = 300'000;
  if (rank::number != 0) {
    other = 0;
    send(static_cast<std::uint64_t>(rank::number), length);
    return parc_close(parc);
  }
  std::vector<Bytes> in(static_cast<std::size_t>(size), Bytes(length));
  std::vector<parc_op> reads;
  for (int from = 1; from < size; ++from) reads.push_back(start(in[static_cast<std::size_t>(from)], from));
  std::vector<parc_status> statuses(reads.size());
  rank::expect_code(parc_waitall(parc, size - 1, reads.data(), statuses.data()), PARC_OK, "waitall");
  for (other = 1; other < size; ++other)
    check(in[static_cast<std::size_t>(other)], static_cast<std::uint64_t>(other),
          statuses[static_cast<std::size_t>(other - 1)]);
  return parc_close(parc);
}

} // namespace

int main(int, char** words) {
  parc = rank::open();
  if (std::strcmp(words[1], "gathers") == 0) return gather();
  other = 1 - rank::number;
  const std::string_view how = words[1];
  const std::array<std::pair<std::string_view, void (*)()>, 7> ways{{{"waits", waits},
                                                                     {"looks", looks},
                                                                     {"both_ways", both_ways},
                                                                     {"pieces", pieces},
                                                                     {"truncated", truncated},
                                                                     {"stopped", stopped},
                                                                     {"leaves", leaves}}};
  bool known = false;
  for (const auto& [name, run] : ways)
    if (name == how) known = true, run();
  rank::expect(known, "what is %s?", words[1]);
  rank::expect_code(parc_barrier(parc), PARC_OK, "barrier");
  if (words[2] != nullptr) { // its counters are looked at
    if (rank::number == 0) std::printf("done\n");
    std::fflush(stdout);
    for (;;) pause();
  }
  return parc_close(parc);
}
