// SPDX-License-Identifier: BSD-3-Clause
// THREADS threads of each of two ranks play ping-pong, each with its own partner over there, ROUNDS times,
// while one more thread of each waits for a message that comes when all have finished.
#include "tests/support/programs/rank.hpp"

#include <atomic>
#include <thread>
#include <vector>

namespace {

void play(parc_context* parc, int tag, unsigned rounds) {
  const int peer = 1 - rank::number;
  std::uint64_t ball = 0;
  for (std::uint64_t round = 0; round < rounds; ++round) {
    const bool serves = (round + static_cast<std::uint64_t>(rank::number)) % 2 == 0;
    if (serves) {
      ball = round << 8 | static_cast<unsigned>(tag);
      rank::expect_code(parc_write(parc, peer, tag, &ball, sizeof ball), PARC_OK, "write");
      continue;
    }
    rank::expect_code(parc_read(parc, peer, tag, &ball, sizeof ball, nullptr), PARC_OK, "read");
    rank::expect(ball == (round << 8 | static_cast<unsigned>(tag)), "thread %d got round %d of %d", tag,
                 static_cast<int>(ball >> 8), static_cast<int>(ball & 0xff));
  }
}

} // namespace

int main(int argc, char** argv) {
  if (argc != 3) return 2;
  const int players = std::atoi(argv[1]);
  const auto rounds = static_cast<unsigned>(std::atoi(argv[2]));
  parc_context* parc = rank::open();
  std::atomic<bool> over = false;
  std::thread sleeper([&] {
    char word = 0;
    rank::expect_code(parc_read(parc, 1 - rank::number, 1000, &word, 1, nullptr), PARC_OK, "the last read");
    rank::expect(word == 'z', "the last word is wrong");
    over = true;
  });
  std::vector<std::thread> threads;
  for (int tag = 0; tag < players; ++tag) threads.emplace_back(play, parc, tag, rounds);
  for (std::thread& thread : threads) thread.join();
  rank::expect(!over, "the last message came before it was sent");
  rank::expect_code(parc_barrier(parc), PARC_OK, "barrier");
  rank::expect_code(parc_write(parc, 1 - rank::number, 1000, "z", 1), PARC_OK, "the last write");
  sleeper.join();
  rank::expect_code(parc_close(parc), PARC_OK, "close");
}
