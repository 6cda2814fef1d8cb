// SPDX-License-Identifier: BSD-3-Clause
// Messages that nobody takes yet, more than there are cells for: what follows them, and what goes to others,
// completes all the same. A rank that is to take nothing makes no call until another one has made a file.
#include "tests/support/programs/rank.hpp"

#include <cstring>
#include <filesystem>
#include <fstream>
#include <string>
#include <string_view>
#include <sys/resource.h>
#include <thread>
#include <unistd.h>
#include <vector>

namespace {

parc_context* parc = nullptr;
std::string directory; // of the files

void say(const char* what) {
  std::ofstream(directory + "/" + what).put('\n');
}
void await(const char* what) {
  while (!std::filesystem::exists(directory + "/" + what)) std::this_thread::yield();
}

std::size_t length_of(int message) { // in the cell, in a small body, in a large one
  constexpr std::size_t lengths[] = {8, 400, 1000, 0, 8192};
  return lengths[message % 5];
}
int write(int peer, int message, std::size_t bytes) {
  std::vector<unsigned char> buffer(bytes);
  rank::fill(buffer.data(), bytes, static_cast<std::uint64_t>(message));
  return parc_write(parc, peer, message, buffer.data(), bytes);
}
void read(int peer, int message, std::size_t bytes, int tag) {
  std::vector<unsigned char> buffer(bytes + 1);
  parc_status status{};
  rank::expect_code(parc_read(parc, peer, tag, buffer.data(), buffer.size(), &status), PARC_OK, "read");
  rank::expect(status.tag == message && status.length == bytes &&
                   rank::filled(buffer.data(), bytes, static_cast<std::uint64_t>(message)),
               "message %d came as %d with %zu bytes", message, status.tag,
               static_cast<std::size_t>(status.length));
}

// What was written first is read last.
void last_first(int messages, std::size_t bytes) {
  if (rank::number == 0) {
    for (int i = 0; i < messages; ++i) rank::expect_code(write(1, i, bytes), PARC_OK, "write");
    say("written");
  } else {
    for (int i = messages; i-- > 0;) read(0, i, bytes, i);
  }
}

// What its last message stands behind finds no memory: a sentence, and who reads that goes on.
void starved(int messages) {
  constexpr std::size_t bytes = 1000, room = std::size_t{16} << 20;
  if (rank::number == 0) {
    for (int i = 0; i < messages; ++i) rank::expect_code(write(1, i, bytes), PARC_OK, "write");
    return;
  }
  std::size_t pages = 0;
  std::ifstream("/proc/self/statm") >> pages;
  rlimit limit{};
  getrlimit(RLIMIT_AS, &limit);
  limit.rlim_cur = pages * static_cast<std::size_t>(getpagesize()) + room;
  setrlimit(RLIMIT_AS, &limit);
  unsigned char buffer[bytes];
  rank::expect_code(parc_read(parc, 0, messages - 1, buffer, bytes, nullptr), PARC_ENOMEM, "the last one");
  rank::expect(std::strstr(parc_error_detail(), "RLIMIT_AS") != nullptr, "no word of the limit");
  for (int i = 0; i < messages; ++i) read(0, i, bytes, i);
}

// Rank 1 takes nothing while ranks 0 and 2 exchange messages; then all, in their order.
void others_go_on(int messages) {
  constexpr int exchanges = 2000;
  std::vector<char> long_message(100'000);
  if (rank::number == 0) {
    std::vector<parc_op> writes;
    for (int i = 0; i < messages; ++i) {
      std::vector<unsigned char> buffer(length_of(i));
      rank::fill(buffer.data(), buffer.size(), static_cast<std::uint64_t>(i));
      if (i % 2 == 0) {
        rank::expect_code(parc_write(parc, 1, i, buffer.data(), buffer.size()), PARC_OK, "write");
      } else {
        const parc_op op = parc_initwrite(parc, 1, i, buffer.data(), buffer.size());
        rank::expect_code(parc_wait(parc, op, nullptr), PARC_OK, "wait");
      }
    }
    const parc_op announced = parc_initwrite(parc, 1, messages, long_message.data(), long_message.size());
    for (int i = 0; i < exchanges; ++i) {
      rank::expect_code(write(2, i, length_of(i)), PARC_OK, "write to the other");
      read(2, i, length_of(i), i);
    }
    say("exchanged");
    rank::expect_code(parc_wait(parc, announced, nullptr), PARC_OK, "the long write");
  } else if (rank::number == 2) {
    for (int i = 0; i < exchanges; ++i) {
      read(0, i, length_of(i), PARC_ANY_TAG);
      rank::expect_code(write(0, i, length_of(i)), PARC_OK, "answer");
    }
  } else {
    await("exchanged");
    for (int i = 0; i < messages; ++i) read(0, i, length_of(i), PARC_ANY_TAG);
    parc_status status{};
    rank::expect_code(parc_read(parc, 0, PARC_ANY_TAG, long_message.data(), long_message.size(), &status),
                      PARC_OK, "the long read");
    rank::expect(status.tag == messages, "the long message came as %d", status.tag);
  }
}

// No copy may be held: writes end when their messages leave. The last one is given up before that.
void queued(bool reads) {
  constexpr int messages = 1400;
  if (rank::number == 0) {
    rank::expect_code(parc_set_copy_room(parc, 0), PARC_OK, "copy room");
    std::vector<std::vector<unsigned char>> buffers;
    parc_op last = PARC_OP_NULL;
    int left = 0, refused = 0, given_up = 0;
    for (int i = 0; i < messages; ++i) {
      auto& buffer = buffers.emplace_back(length_of(2));
      rank::fill(buffer.data(), buffer.size(), static_cast<std::uint64_t>(i));
      const iovec piece{buffer.data(), buffer.size()};
      const parc_envelope to = parc_envelope_of(1, 0, i);
      last = parc_initwritev(parc, &to, &piece, 1, PARC_QUEUED);
      rank::expect(last > 0, "write %d gave %lld", i, static_cast<long long>(last));
      parc_completion over{};
      if (parc_completions(parc, &over, 1, 0) == 1) ++left; // it has left at once
    }
    rank::expect(left > 100 && left < messages - 100, "%d have left at once", left);
    rank::expect_code(parc_cancel(parc, last), PARC_OK, "cancel");
    say("started");
    for (parc_completion over{}; left + refused + given_up < messages;) {
      rank::expect_code(parc_completions(parc, &over, 1, -1), 1, "completions");
      const int how = over.status.error;
      ++(how == PARC_OK ? left : how == PARC_EPEER ? refused : given_up);
      rank::expect((how == PARC_ECANCELED) == (over.operation == last), "a write ended with %d", how);
    }
    rank::expect(given_up == 1 && (reads ? refused == 0 : refused > 100), "%d left, %d refused, %d given up",
                 left, refused, given_up);
  } else {
    await("started");
    if (!reads) _exit(0); // without a word
    for (int i = 0; i < messages - 1; ++i) read(0, i, length_of(2), PARC_ANY_TAG);
    parc_status status{};
    const parc_envelope any = parc_envelope_of(0, 0, PARC_ANY_TAG);
    rank::expect(parc_iprobe(parc, &any, &status) == 0, "message %d was given up", status.tag);
  }
}

// Until "take" is there none is taken, and then so many until "end" is: whoever looks on sees them stand.
void stands(int messages, std::size_t bytes, int taken) {
  if (rank::number == 0) {
    for (int i = 0; i < messages; ++i) rank::expect_code(write(1, i, bytes), PARC_OK, "write");
    say("written");
    return read(1, messages, 0, PARC_ANY_TAG);
  }
  await("take");
  int next = 0;
  while (next < taken) read(0, next++, bytes, PARC_ANY_TAG);
  say("taken");
  const parc_envelope never = parc_envelope_of(0, 0, messages);
  while (!std::filesystem::exists(directory + "/end")) {
    parc_status status{};
    rank::expect_code(parc_iprobe(parc, &never, &status), 0, "probe");
    std::this_thread::yield();
  }
  while (next < messages) read(0, next++, bytes, PARC_ANY_TAG);
  rank::expect_code(write(0, messages, 0), PARC_OK, "answer");
}

// Whoever leaves has written: it is read when its writer has closed, or is about to.
void closing(int messages, bool reads) {
  if (rank::number == 0 || !reads)
    for (int i = 0; i < messages; ++i)
      rank::expect_code(write(1 - rank::number, i, length_of(i)), PARC_OK, "write");
  if (rank::number == 0) return say("closing");
  if (!reads) return;
  await("closing");
  for (int i = messages; i-- > 0;) read(0, i, length_of(i), i);
}

} // namespace

int main(int, char** arguments) {
  parc = rank::open();
  directory = arguments[1];
  const std::string_view what = arguments[2];
  if (what == "last_first")
    last_first(std::atoi(arguments[3]), std::strtoul(arguments[4], nullptr, 10));
  else if (what == "others")
    others_go_on(std::atoi(arguments[3]));
  else if (what == "starved")
    starved(40'000);
  else if (what == "queued")
    queued(true);
  else if (what == "gone")
    queued(false);
  else if (what == "stands")
    stands(std::atoi(arguments[3]), std::strtoul(arguments[4], nullptr, 10), std::atoi(arguments[5]));
  else if (what == "closing")
    closing(5000, true);
  else
    closing(5000, false);
  rank::expect_code(parc_close(parc), PARC_OK, "close");
}
