// SPDX-License-Identifier: BSD-3-Clause
// Buffers that come and go under early release. In each round the ranks send each other 40 messages of 0 to
// 4 MiB, from and into memory that was just taken, half of it from parc_alloc; some is freed before anybody
// has looked at it, some kept for a few rounds. No call may fail for want of memory or segments: adoption
// has to give way.
// Usage: early_churn SEED ROUNDS off|envelope|full
#include "tests/support/programs/rank.hpp"

#include <algorithm>
#include <cinttypes>
#include <cstring>
#include <random>
#include <string>
#include <vector>

RANK_WITHOUT_LEAK_CHECK

namespace {

constexpr std::size_t messages = 40, most_bytes = 4 << 20;
constexpr std::size_t stride = 1021; // between the bytes that are looked at
parc_context* parc = nullptr;
std::uint64_t seed = 0;

class Random {
public:
  explicit Random(std::uint64_t from) : random_(from) {}
  std::size_t below(std::size_t n) { return std::uniform_int_distribution<std::size_t>(0, n - 1)(random_); }
  bool chance(unsigned percent) { return below(100) < percent; }
  template <class T> void shuffle(std::vector<T>& list) { std::shuffle(list.begin(), list.end(), random_); }

private:
  std::mt19937_64 random_;
};

struct Message {
  int from, to;
  std::size_t bytes;
};

// The same in all ranks.
Message draw(Random& plan) {
  const auto any_rank = [&] {
    return static_cast<int>(plan.below(static_cast<std::size_t>(parc_size(parc))));
  };
  const int from = any_rank(), to = any_rank();
  const bool small = plan.chance(30);
  return {from, to, plan.below(small ? 20'000 : most_bytes + 1)};
}

struct Buffer {
  unsigned char* memory = nullptr;
  bool shared = false; // of parc_alloc
  std::uint64_t until = 0;

  void free() {
    if (shared)
      parc_free(parc, memory);
    else
      std::free(memory);
  }
};

Buffer take(Random& own, std::size_t bytes) {
  Buffer taken;
  taken.shared = own.chance(50);
  taken.memory = static_cast<unsigned char*>(taken.shared ? parc_alloc(parc, bytes) : std::malloc(bytes));
  rank::expect(taken.memory != nullptr || bytes == 0, "seed %" PRIu64 ": no memory for %zu bytes", seed,
               bytes);
  return taken;
}

struct Active {
  parc_op id;
  Buffer buffer;
  std::size_t bytes;
  std::uint64_t key;
};

void check(const Active& read, std::size_t at) {
  rank::expect(read.buffer.memory[at] == rank::byte_of(read.key, at),
               "seed %" PRIu64 ": byte %zu of message %" PRIu64 " is wrong", seed, at, read.key);
}

void check_all(const Active& read) {
  for (std::size_t at = 0; at < read.bytes; at += stride) check(read, at);
  if (read.bytes != 0) check(read, read.bytes - 1);
}

class Round {
public:
  Round(std::uint64_t number, Random& own, std::vector<Buffer>& kept)
      : number_(number), own_(own), kept_(kept) {}

  void start(std::size_t index, const Message& message) {
    const std::uint64_t key = number_ * messages + index;
    const int tag = static_cast<int>(index);
    if (message.to == rank::number) {
      Active read{0, take(own_, message.bytes), message.bytes, key};
      read.id = parc_initread(parc, message.from, tag, read.buffer.memory, message.bytes);
      rank::expect(read.id > 0, "seed %" PRIu64 ": initread gave %" PRId64, seed, read.id);
      reads_.push_back(read);
    }
    if (message.from == rank::number) {
      Active write{0, take(own_, message.bytes), message.bytes, key};
      for (std::size_t at = 0; at < message.bytes; at += stride)
        write.buffer.memory[at] = rank::byte_of(key, at);
      if (message.bytes != 0) write.buffer.memory[message.bytes - 1] = rank::byte_of(key, message.bytes - 1);
      write.id = parc_initwrite(parc, message.to, tag, write.buffer.memory, message.bytes);
      rank::expect(write.id > 0, "seed %" PRIu64 ": initwrite gave %" PRId64, seed, write.id);
      writes_.push_back(write);
    }
  }

  void finish() {
    own_.shuffle(reads_);
    for (const Active& read : reads_) {
      rank::expect_code(parc_wait(parc, read.id, nullptr), PARC_OK, "wait for a read");
      if (own_.chance(30)) check_all(read);
    }
    own_.shuffle(writes_);
    for (const Active& write : writes_)
      rank::expect_code(parc_wait(parc, write.id, nullptr), PARC_OK, "wait for a write");
    for (const Active& read : reads_) {
      const std::size_t how = own_.below(10);
      if (how < 7) check_all(read);
      give_back(read.buffer);
    }
    for (const Active& write : writes_) give_back(write.buffer);
  }

private:
  void give_back(Buffer buffer) {
    buffer.until = number_ + own_.below(5);
    if (buffer.until > number_ && kept_.size() < 2 * messages)
      kept_.push_back(buffer);
    else
      buffer.free();
  }

  const std::uint64_t number_;
  Random& own_;
  std::vector<Buffer>& kept_;
  std::vector<Active> reads_, writes_;
};

} // namespace

int main(int argc, char** argv) {
  if (argc != 4) return 2;
  seed = std::strtoull(argv[1], nullptr, 10);
  const std::uint64_t rounds = std::strtoull(argv[2], nullptr, 10);
  const std::string level = argv[3];
  parc = rank::open();
  rank::expect_code(parc_set_release(parc, level == "full"       ? PARC_RELEASE_FULL
                                           : level == "envelope" ? PARC_RELEASE_ENVELOPE
                                                                 : PARC_RELEASE_OFF),
                    PARC_OK, "set_release");
  Random plan(seed), own(seed * 1000 + static_cast<std::uint64_t>(rank::number));
  std::vector<Buffer> kept;
  for (std::uint64_t round = 0; round < rounds; ++round) {
    std::erase_if(kept, [&](Buffer& each) { return each.until <= round && (each.free(), true); });
    Round now(round, own, kept);
    for (std::size_t i = 0; i < messages; ++i) now.start(i, draw(plan));
    now.finish();
  }
  for (Buffer& each : kept) each.free();
  parc_release_counts counts;
  rank::expect_code(parc_get_release_counts(parc, &counts), PARC_OK, "counts");
  std::printf("%" PRIu64 " released, %" PRIu64 " faults\n", counts.released, counts.faults);
  rank::expect_code(parc_close(parc), PARC_OK, "close");
}
