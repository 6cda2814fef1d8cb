// SPDX-License-Identifier: BSD-3-Clause
// Which messages early_stress sends. Every rank, and every thread of it, draws the same plan from the same
// seed, so nobody has to be told what comes: a round is a list of messages between any two ranks. Some are
// passed on in the next round by who has read them, as a part or whole.
#pragma once

#include <algorithm>
#include <cstdint>
#include <random>
#include <vector>

namespace stress {

class Random {
public:
  explicit Random(std::uint64_t seed) : engine_(seed) {}
  std::uint64_t below(std::uint64_t n) {
    return std::uniform_int_distribution<std::uint64_t>(0, n - 1)(engine_);
  }
  std::uint64_t between(std::uint64_t low, std::uint64_t high) { return low + below(high - low + 1); }
  bool chance(unsigned percent) { return below(100) < percent; }
  template <class T> const T& one_of(const std::vector<T>& list) { return list[below(list.size())]; }
  template <class T> void shuffle(std::vector<T>& list) { std::shuffle(list.begin(), list.end(), engine_); }

private:
  std::mt19937_64 engine_;
};

struct Message {
  int number; // in the job, and its tag
  int from, to;
  std::uint64_t key; // rank::byte_of(key, first + i) is byte i
  std::size_t first, length;
  int passes_on; // index of the last round's message whose buffer it is written from; -1: none
  bool kept;     // it is passed on itself
};

class Plan {
public:
  static constexpr std::size_t most = 64; // messages of a round

  Plan(std::uint64_t seed, int messages, int ranks) : random_(seed), left_(messages), ranks_(ranks) {}

  // The next round; empty: that was all.
  std::vector<Message> next() {
    std::vector<Message> round;
    for (std::size_t i = 0; i < last_.size(); ++i)
      if (last_[i].kept) round.push_back(passed_on(last_[i], static_cast<int>(i)));
    for (std::uint64_t more = random_.between(1, most - round.size()); more > 0; --more)
      round.push_back(fresh());
    if (static_cast<std::size_t>(left_) < round.size()) round.resize(static_cast<std::size_t>(left_));
    for (Message& message : round) {
      message.number = ++numbered_;
      message.key = message.passes_on < 0 ? static_cast<std::uint64_t>(message.number) : message.key;
      message.kept = random_.chance(20);
    }
    left_ -= static_cast<int>(round.size());
    return last_ = round;
  }

private:
  Message passed_on(const Message& from, int index) {
    const std::size_t skipped = random_.chance(50) ? 0 : random_.below(from.length);
    const std::size_t length =
        random_.chance(50) ? from.length - skipped : random_.between(1, from.length - skipped);
    return {0, from.to, any_rank(), from.key, from.first + skipped, length, index, false};
  }

  // Sometimes to oneself.
  Message fresh() {
    const int from = any_rank();
    const int to = random_.chance(5) ? from : (from + 1 + below_ranks(ranks_ - 1)) % ranks_;
    return {0, from, to, 0, 0, length(), -1, false};
  }

  int any_rank() { return below_ranks(ranks_); }
  int below_ranks(int n) { return static_cast<int>(random_.below(static_cast<std::uint64_t>(n))); }

  // Most are short, so that there can be many; a page is where early release begins.
  std::size_t length() {
    const std::uint64_t kind = random_.below(100);
    if (kind < 35) return random_.between(1, 600);
    if (kind < 55) return random_.between(600, 8192);
    if (kind < 93) return random_.between(4096, 40'000);
    return random_.between(40'000, 300'000);
  }

  Random random_;
  int left_, numbered_ = 0;
  const int ranks_;
  std::vector<Message> last_;
};

} // namespace stress
