// SPDX-License-Identifier: BSD-3-Clause
// Rank 0 reads from anybody, of its host alone so far: its kernel has not been told of these reads when it
// must know them (OfKernel::must_know).
//   kernel FILE   messages come by the kernel, when FILE is there
//   mixed         the same, while others come without it
//   computes FILE the same, and rank 0 is not in parc until they have ended there
//   cancels FILE  the same, and rank 0 gives a read up that it had posted then, and its memory back
//   left FILE     everybody leaves instead
//   spawned HOST  by a program that is started there: "child"
#include "tests/support/programs/rank.hpp"

#include <array>
#include <string_view>
#include <unistd.h>
#include <vector>

namespace {

constexpr int tag = 1;
constexpr std::array<std::size_t, 4> lengths{8, 0, 100'000, 3000};

void await(const char* file) {
  while (access(file, F_OK) != 0) usleep(1000);
}

struct Reads {
  explicit Reads(parc_context* context) : parc(context) {
    for (std::size_t i = 0; i < lengths.size(); ++i) {
      bytes[i].resize(lengths[i]);
      operations[i] = parc_initread(parc, PARC_ANY_SOURCE, tag, bytes[i].data(), lengths[i]);
      rank::expect(operations[i] > 0, "initread");
    }
    const parc_envelope any = parc_envelope_of(PARC_ANY_SOURCE, 0, tag + 1);
    rank::expect((probe = parc_initprobe(parc, &any, 0)) > 0, "initprobe");
  }
  void finish(int from) {
    for (std::size_t i = 0; i < lengths.size(); ++i) {
      parc_status status{};
      rank::expect_code(parc_wait(parc, operations[i], &status), PARC_OK, "the wait for anybody");
      rank::expect(status.source == from && status.length == lengths[i] &&
                       rank::filled(bytes[i].data(), lengths[i], i),
                   "read %zu has %d's message of %zu bytes", i, status.source,
                   static_cast<std::size_t>(status.length));
    }
    rank::expect_code(parc_wait(parc, probe, nullptr), PARC_OK, "the probe for anybody");
    rank::expect_code(parc_read(parc, from, tag + 1, nullptr, 0, nullptr), PARC_OK, "what was probed for");
  }
  void fail() {
    for (const parc_op read : operations)
      rank::expect_code(parc_wait(parc, read, nullptr), PARC_EPEER, "the wait for nobody");
    rank::expect_code(parc_wait(parc, probe, nullptr), PARC_EPEER, "the probe for nobody");
  }
  parc_context* parc;
  std::array<std::vector<unsigned char>, lengths.size()> bytes;
  std::array<parc_op, lengths.size()> operations{};
  parc_op probe = 0;
};

// Each has been matched when the next one is written.
void send(parc_context* parc, int to) {
  for (std::size_t i = 0; i < lengths.size(); ++i) {
    std::vector<unsigned char> bytes(lengths[i]);
    rank::fill(bytes.data(), lengths[i], i);
    const parc_envelope envelope = parc_envelope_of(to, 0, tag);
    const iovec piece{bytes.data(), lengths[i]};
    const parc_op write = parc_initwritev(parc, &envelope, &piece, 1, PARC_SYNCHRONOUS);
    rank::expect_code(parc_wait(parc, write, nullptr), PARC_OK, "write");
  }
  rank::expect_code(parc_write(parc, to, tag + 1, nullptr, 0), PARC_OK, "write");
}

// What a program at that level sends goes through its kernel.
void send_by_kernel(parc_context* parc) {
  rank::expect_code(parc_set_release(parc, PARC_RELEASE_FULL), PARC_OK, "set_release");
  send(parc, 0);
}

// Of each sender in its order; the first half of what goes by the kernel comes when much has come without it.
void mixed(parc_context* parc) {
  constexpr std::uint64_t each = 2000;
  constexpr std::size_t ahead = 5;
  if (rank::number != 0) {
    if (rank::number == 1)
      rank::expect_code(parc_set_release(parc, PARC_RELEASE_FULL), PARC_OK, "set_release");
    if (rank::number == 1)
      rank::expect_code(parc_read(parc, 0, tag, nullptr, 0, nullptr), PARC_OK, "the word to begin");
    for (std::uint64_t i = 0; i < each; ++i)
      rank::expect_code(parc_write(parc, 0, tag, &i, sizeof i), PARC_OK, "write");
    return;
  }
  const int senders = parc_size(parc) - 1;
  std::vector<std::uint64_t> next(static_cast<std::size_t>(senders + 1));
  std::array<std::uint64_t, ahead> numbers{};
  std::array<parc_op, ahead> reads{};
  const std::uint64_t all = each * static_cast<std::uint64_t>(senders);
  for (std::uint64_t i = 0; i < all + ahead; ++i) {
    const std::size_t at = i % ahead;
    if (i == each / 2) rank::expect_code(parc_write(parc, 1, tag, nullptr, 0), PARC_OK, "the word to begin");
    if (i >= ahead) {
      parc_status status{};
      rank::expect_code(parc_wait(parc, reads[at], &status), PARC_OK, "the wait for anybody");
      std::uint64_t& wanted = next[static_cast<std::size_t>(status.source)];
      rank::expect(numbers[at] == wanted++, "%d's message %d came too early", status.source,
                   static_cast<int>(numbers[at]));
    }
    if (i < all) reads[at] = parc_initread(parc, PARC_ANY_SOURCE, tag, &numbers[at], sizeof numbers[at]);
  }
}

// A segment that nobody uses goes back with the first call after a second, when the kernel is through with
// it.
void cancel(parc_context* parc, const char* file) {
  constexpr std::size_t bytes = std::size_t{64} << 20;
  void* const memory = parc_alloc(parc, bytes);
  const parc_op read = parc_initread(parc, PARC_ANY_SOURCE, tag + 1, memory, bytes);
  rank::expect(memory != nullptr && read > 0, "initread");
  std::puts("waits");
  std::fflush(stdout);
  await(file);
  rank::expect_code(parc_cancel(parc, read), PARC_OK, "cancel");
  rank::expect_code(parc_wait(parc, read, nullptr), PARC_ECANCELED, "the wait for what was given up");
  parc_free(parc, memory);
  for (int i = 0; i < 15; ++i) {
    usleep(100'000);
    (void)parc_done(parc, read);
  }
  rank::expect_code(parc_read(parc, 1, tag, nullptr, 0, nullptr), PARC_OK, "read");
}

void spawned(parc_context* parc, const char* program, const char* host) {
  const char* const arguments[] = {program, "child", nullptr};
  Reads reads(parc);
  int peer = -1;
  rank::expect_code(parc_spawn(parc, arguments, 1, host, &peer), PARC_OK, "parc_spawn");
  reads.finish(peer);
}

} // namespace

int main(int argc, char** argv) {
  if (argc < 2) return 2;
  parc_context* const parc = rank::open();
  const std::string_view what = argv[1];
  if (what == "mixed") {
    mixed(parc);
  } else if (what == "spawned") {
    spawned(parc, argv[0], argv[2]);
  } else if (what == "cancels" && rank::number == 0) {
    cancel(parc, argv[2]);
  } else if (what == "cancels") {
    rank::expect_code(parc_set_release(parc, PARC_RELEASE_FULL), PARC_OK, "set_release");
    const parc_envelope envelope = parc_envelope_of(0, 0, tag);
    const parc_op write = parc_initwritev(parc, &envelope, nullptr, 0, 0);
    rank::expect(write > 0, "initwrite");
    usleep(100'000); // for it to be there while rank 0 computes
    std::fclose(std::fopen(argv[2], "w"));
    rank::expect_code(parc_wait(parc, write, nullptr), PARC_OK, "write");
  } else if (what == "child") {
    send(parc, parc_parent(parc));
  } else if (rank::number == 0) {
    Reads reads(parc);
    std::puts("waits");
    std::fflush(stdout);
    if (what == "computes") await(argv[2]);
    what == "left" ? reads.fail() : reads.finish(1);
  } else {
    if (what != "computes") await(argv[2]);
    if (what != "left" && rank::number == 1) send_by_kernel(parc);
    if (what == "computes" && rank::number == 1) std::fclose(std::fopen(argv[2], "w"));
  }
  rank::expect_code(parc_close(parc), PARC_OK, "close");
}
