// SPDX-License-Identifier: BSD-3-Clause
// Two ranks or more, and what they put into each other's windows. "all": each into each, all that a put may
// be asked for and all that it is refused for. "random SEED ROUNDS": puts and messages of all sizes; who
// reads a message looks for what was put before it. "stopped": rank 0 puts into ranks that are stopped.
// "killed HOST": puts into a program that it has spawned there, until that is no more. "one-way": rank 0 puts
// and writes to rank 1, which writes it nothing. With "own" behind that, windows are in malloc's memory.
#include "tests/support/programs/rank.hpp"

#include <algorithm>
#include <array>
#include <atomic>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <random>
#include <string>
#include <string_view>
#include <sys/types.h>
#include <unistd.h>
#include <vector>

namespace {

constexpr std::uint64_t window = 7;
constexpr std::size_t stripe = 1 << 20; // of each rank, in each window
constexpr unsigned rights = PARC_MAY_GET | PARC_MAY_PUT;
bool own = false;

// What rank `from` puts the `version`th time.
std::uint64_t text_of(int from, std::uint64_t version) {
  return 1'000'000 * static_cast<std::uint64_t>(from + 1) + version;
}

struct Exposed {
  explicit Exposed(parc_context* context)
      : parc(context), bytes(stripe * static_cast<std::size_t>(parc_size(parc))),
        memory(static_cast<unsigned char*>(own ? std::malloc(bytes) : parc_alloc(parc, bytes))) {
    rank::expect(memory != nullptr, "there is no memory");
    std::memset(memory, 0, bytes);
    rank::expect_code(parc_expose(parc, window, memory, bytes, rights), PARC_OK, "parc_expose");
    rank::expect_code(parc_barrier(parc), PARC_OK, "parc_barrier");
  }
  Exposed(const Exposed&) = delete;
  Exposed& operator=(const Exposed&) = delete;
  ~Exposed() {
    (void)parc_unexpose(parc, window);
    own ? std::free(memory) : parc_free(parc, memory);
  }
  [[nodiscard]] const unsigned char* of(int from) const {
    return memory + stripe * static_cast<std::size_t>(from);
  }
  parc_context* parc;
  std::size_t bytes;
  unsigned char* memory;
};

// In the window of `peer`, of this rank's stripe.
parc_place place_of(int peer, std::size_t offset) {
  return {peer, window, stripe * static_cast<std::size_t>(rank::number) + offset};
}

void expect_put(const Exposed& exposed, int from, std::size_t offset, std::size_t length,
                std::uint64_t version) {
  rank::expect(rank::filled(exposed.of(from) + offset, length, text_of(from, version)),
               "%zu bytes at %zu, the %lluth that %d has put, are not there", length, offset,
               static_cast<unsigned long long>(version), from);
}

struct Ring {
  explicit Ring(parc_context* parc)
      : next((rank::number + 1) % parc_size(parc)),
        before((rank::number + parc_size(parc) - 1) % parc_size(parc)) {}
  int next, before;
};

void tell(parc_context* parc, int peer, int tag) {
  rank::expect_code(parc_write(parc, peer, tag, nullptr, 0), PARC_OK, "telling of a put");
}
void hear(parc_context* parc, int peer, int tag) {
  rank::expect_code(parc_read(parc, peer, tag, nullptr, 0, nullptr), PARC_OK, "hearing of a put");
}

// A buffer of either kind, which is overwritten when its put has finished.
void put_and_tell(parc_context* parc, const Exposed& exposed) {
  const Ring ring(parc);
  std::uint64_t version = 0;
  for (const std::size_t length : {std::size_t{0}, std::size_t{1}, std::size_t{8}, std::size_t{192},
                                   std::size_t{4096}, std::size_t{100'000}, stripe - 333}) {
    for (const unsigned flags : {0u, PARC_FROM_END, PARC_SYNCHRONOUS}) {
      ++version;
      std::vector<unsigned char> anywhere(length);
      auto* const shared = static_cast<unsigned char*>(parc_alloc(parc, length));
      for (unsigned char* from : {anywhere.data(), shared}) {
        rank::fill(from, length, text_of(rank::number, version));
        const parc_place to = place_of(ring.next, 333);
        const parc_op put = parc_initput(parc, &to, from, length, flags);
        rank::expect(put > 0, "parc_initput gave %d", static_cast<int>(put));
        parc_status status{};
        rank::expect_code(parc_wait(parc, put, &status), PARC_OK, "the wait for a put");
        rank::expect(status.source == ring.next && status.length == length &&
                         status.tag == static_cast<int>(window),
                     "a put of %zu bytes has a wrong status", length);
        if (length != 0) std::memset(from, 0xee, length);
        tell(parc, ring.next, 1);
        hear(parc, ring.before, 1);
        expect_put(exposed, ring.before, 333, length, version);
        tell(parc, ring.before, 2); // it may be put over
        hear(parc, ring.next, 2);
      }
      parc_free(parc, shared);
    }
  }
}

void put_pieces(parc_context* parc, const Exposed& exposed) {
  const Ring ring(parc);
  std::array<unsigned char, 6000> text{};
  rank::fill(text.data(), text.size(), text_of(rank::number, 100));
  const iovec pieces[] = {
      {text.data(), 1000}, {nullptr, 0}, {text.data() + 1000, 3000}, {text.data() + 4000, 2000}};
  const parc_place to = place_of(ring.next, 1);
  const parc_op put = parc_initputv(parc, &to, pieces, 4, PARC_QUEUED | PARC_SYNCHRONOUS);
  rank::expect(put > 0, "parc_initputv gave %d", static_cast<int>(put));
  parc_completion done;
  rank::expect(parc_completions(parc, &done, 1, -1) == 1 && done.operation == put &&
                   done.status.error == PARC_OK,
               "a queued put was not told");
  tell(parc, ring.next, 1);
  hear(parc, ring.before, 1);
  expect_put(exposed, ring.before, 1, text.size(), 100);
  rank::expect_code(parc_barrier(parc), PARC_OK, "parc_barrier");
}

// Into every other stretch of a stripe, and what lies between is left alone.
void put_rows(parc_context* parc, const Exposed& exposed) {
  const Ring ring(parc);
  std::uint64_t version = 150;
  for (const std::size_t row : {std::size_t{1}, std::size_t{8}, std::size_t{40}, std::size_t{3000}})
    for (const std::size_t count : {std::size_t{1}, std::size_t{3}, std::size_t{20}})
      for (const bool down : {false, true}) {
        ++version;
        const std::size_t length = row * count, stride = 2 * row;
        std::vector<unsigned char> text(length);
        rank::fill(text.data(), length, text_of(rank::number, version));
        const parc_place to = place_of(ring.next, down ? 10 + (count - 1) * stride : 10);
        const iovec piece{text.data(), length};
        std::vector<unsigned char> was(exposed.of(ring.before),
                                       exposed.of(ring.before) + 10 + count * stride);
        rank::expect_code(parc_barrier(parc), PARC_OK, "parc_barrier");
        const auto distance = static_cast<std::int64_t>(stride);
        const parc_op put =
            parc_initput_rows(parc, &to, row, down ? -distance : distance, &piece, 1, PARC_SYNCHRONOUS);
        rank::expect(put > 0, "parc_initput_rows gave %d", static_cast<int>(put));
        rank::expect_code(parc_wait(parc, put, nullptr), PARC_OK, "the wait for rows");
        tell(parc, ring.next, 1);
        hear(parc, ring.before, 1);
        rank::fill(text.data(), length, text_of(ring.before, version));
        for (std::size_t i = 0; i < count; ++i)
          std::memcpy(was.data() + 10 + (down ? count - 1 - i : i) * stride, text.data() + i * row, row);
        rank::expect(std::equal(was.begin(), was.end(), exposed.of(ring.before)),
                     "%zu rows of %zu bytes are not in place", count, row);
        rank::expect_code(parc_barrier(parc), PARC_OK, "parc_barrier");
      }
  const parc_place to = place_of(ring.next, 0);
  std::array<unsigned char, 30> text{};
  const iovec piece{text.data(), text.size()};
  for (const std::int64_t stride : {0, 9, -9})
    rank::expect(parc_initput_rows(parc, &to, 10, stride, &piece, 1, 0) == PARC_EINVAL, "rows may overlap");
}

// More than there are places for; a barrier says that they are there. And a get sees what its own program has
// put.
void put_many(parc_context* parc, const Exposed& exposed) {
  const Ring ring(parc);
  constexpr std::size_t count = 5000, length = 100;
  std::vector<unsigned char> text(count * length), got(count * length);
  rank::fill(text.data(), text.size(), text_of(rank::number, 200));
  for (std::size_t i = 0; i < count; ++i) {
    const parc_place to = place_of(ring.next, i * length);
    rank::expect_code(parc_put(parc, &to, text.data() + i * length, length), PARC_OK, "one of many puts");
  }
  const parc_place all = place_of(ring.next, 0);
  rank::expect_code(parc_get(parc, &all, got.data(), got.size()), PARC_OK, "getting what was put");
  rank::expect_code(parc_settle(parc, nullptr, 0), PARC_OK, "parc_settle");
  rank::expect(got == text, "a get does not see what its program has put");
  rank::expect_code(parc_barrier(parc), PARC_OK, "parc_barrier");
  expect_put(exposed, ring.before, 0, count * length, 200);
  rank::expect_code(parc_barrier(parc), PARC_OK, "parc_barrier");
}

// Somebody else hears of it.
void put_and_be_quiet(parc_context* parc) {
  const Ring ring(parc);
  std::vector<unsigned char> text(300'000), got(text.size());
  for (std::uint64_t version = 300; version < 310; ++version) {
    rank::fill(text.data(), text.size(), text_of(rank::number, version));
    const parc_place to = place_of(ring.next, 5);
    const parc_op put = parc_initput(parc, &to, text.data(), text.size(), 0);
    rank::expect_code(parc_quiet(parc), PARC_OK, "parc_quiet");
    rank::expect(parc_done(parc, put) == 1, "a put is not over that is in place");
    rank::expect_code(parc_wait(parc, put, nullptr), PARC_OK, "the wait for a put");
    const int other = (rank::number + parc_size(parc) - 1) % parc_size(parc);
    tell(parc, other, 3);
    hear(parc, ring.next, 3);
    const int of = (ring.next + 1) % parc_size(parc);
    const parc_place from{of, window, stripe * static_cast<std::size_t>(ring.next) + 5};
    rank::expect_code(parc_get(parc, &from, got.data(), got.size()), PARC_OK, "getting what another has put");
    rank::expect_code(parc_settle(parc, nullptr, 0), PARC_OK, "parc_settle");
    rank::expect(rank::filled(got.data(), got.size(), text_of(ring.next, version)),
                 "what %d has put into %d is not there behind its parc_quiet", ring.next, of);
    rank::expect_code(parc_barrier(parc), PARC_OK, "parc_barrier");
  }
}

// Everybody adds to a word of everybody, which each has found as no other has.
void count(parc_context* parc, const Exposed& exposed) {
  constexpr int each = 200;
  const int ranks = parc_size(parc);
  const auto here = [&](std::size_t at) {
    return std::atomic_ref(*reinterpret_cast<std::int64_t*>(exposed.memory + at));
  };
  here(0).store(0);
  here(8).store(0);
  rank::expect_code(parc_barrier(parc), PARC_OK, "parc_barrier");
  std::vector<std::int64_t> last(static_cast<std::size_t>(ranks), -1);
  for (int i = 0; i < each; ++i)
    for (int peer = 0; peer < ranks; ++peer) {
      const parc_place counter{peer, window, 0};
      std::int64_t before = -1;
      rank::expect_code(parc_fetch_add(parc, &counter, 1, &before), PARC_OK, "parc_fetch_add");
      rank::expect(before > last[static_cast<std::size_t>(peer)],
                   "an addition has found what one before it had");
      last[static_cast<std::size_t>(peer)] = before;
    }
  std::vector<parc_op> bits;
  std::uint64_t before = 0;
  for (int peer = 0; peer < ranks; ++peer) {
    const parc_place word{peer, window, 12};
    bits.push_back(parc_initatomic(parc, &word, PARC_OR, 4, 1u << rank::number, 0, nullptr, 0));
  }
  rank::expect_code(parc_quiet(parc), PARC_OK, "parc_quiet");
  rank::expect_code(parc_waitall(parc, ranks, bits.data(), nullptr), PARC_OK, "waiting for atomics");
  rank::expect_code(parc_barrier(parc), PARC_OK, "parc_barrier");
  rank::expect(here(0).load() == std::int64_t{each} * ranks, "%d additions make %lld", each * ranks,
               static_cast<long long>(here(0).load()));
  rank::expect(here(8).load() == std::int64_t{(1 << ranks) - 1} << 32, "not all have set their bit");
  const parc_place odd{0, window, 4}, nowhere{0, 8, 8};
  rank::expect(parc_initatomic(parc, &odd, PARC_ADD, 8, 1, 0, nullptr, 0) == PARC_EINVAL, "it is misaligned");
  rank::expect(parc_initatomic(parc, &odd, PARC_ADD, 2, 1, 0, nullptr, 0) == PARC_EINVAL, "it is too narrow");
  rank::expect(parc_initatomic(parc, &odd, static_cast<parc_atomic>(6), 4, 1, 0, nullptr, 0) == PARC_EINVAL,
               "there is no such operation");
  rank::expect_code(parc_fetch_add(parc, &nowhere, 1, nullptr), PARC_EPLACE, "adding to nothing");
  rank::expect(std::strstr(parc_error_detail(), "atomic operation of 8 bytes at 8 of window 8") != nullptr,
               "the detail names no atomic operation");
  const parc_place here_too{rank::number, window, 8};
  const parc_op swap = parc_initatomic(parc, &here_too, PARC_COMPARE_SWAP, 8, 5,
                                       static_cast<std::uint64_t>(here(8).load()), &before, PARC_QUEUED);
  parc_completion done;
  rank::expect(parc_completions(parc, &done, 1, -1) == 1 && done.operation == swap &&
                   done.status.has_data == 1 && done.status.data == before && done.status.length == 8,
               "a queued atomic was not told");
  rank::expect(here(8).load() == 5 && before == std::uint64_t{(1u << ranks) - 1} << 32,
               "a word was not swapped");
  rank::expect_code(parc_barrier(parc), PARC_OK, "parc_barrier");
}

void expect_refused(parc_context* parc, const parc_place& to, std::size_t length, int code,
                    const char* sentence) {
  const std::vector<unsigned char> text(length);
  const parc_op put = parc_initput(parc, &to, text.data(), length, PARC_SYNCHRONOUS);
  rank::expect_code(put < 0 ? static_cast<int>(put) : parc_wait(parc, put, nullptr), code, sentence);
  rank::expect(std::strstr(parc_error_detail(), sentence) != nullptr, "the detail says nothing of \"%s\"",
               sentence);
}

void put_where_nothing_is(parc_context* parc, const Exposed& exposed) {
  const Ring ring(parc);
  const std::uint64_t end = exposed.bytes;
  auto* const closed = static_cast<unsigned char*>(parc_alloc(parc, 100));
  std::memset(closed, 1, 100);
  rank::expect_code(parc_expose(parc, 9, closed, 100, PARC_MAY_GET), PARC_OK, "parc_expose");
  rank::expect_code(parc_expose(parc, 10, closed, 100, PARC_MAY_PUT), PARC_OK, "parc_expose");
  rank::expect_code(parc_barrier(parc), PARC_OK, "parc_barrier");
  expect_refused(parc, {ring.next, 8, 0}, 1, PARC_EPLACE, "put of 1 bytes at 0 of window 8 of peer");
  expect_refused(parc, {ring.next, 9, 0}, 1, PARC_EPLACE, "window 9");
  expect_refused(parc, {ring.next, window, end - 9}, 10, PARC_EPLACE, "window 7");
  expect_refused(parc, {ring.next, window, end - 9}, 500'000, PARC_EPLACE, "put of 500000 bytes");
  expect_refused(parc, {ring.next, window, UINT64_MAX}, 2, PARC_EPLACE, "window 7");
  expect_refused(parc, {parc_size(parc) + 5, window, 0}, 1, PARC_EINVAL, "there is no rank");
  expect_refused(parc, {PARC_ANY_SOURCE, window, 0}, 1, PARC_EINVAL, "needs a rank");
  unsigned char one = 0;
  const parc_place hidden{ring.next, 10, 0}, nowhere{ring.next, 8, 40};
  rank::expect_code(parc_get(parc, &hidden, &one, 1), PARC_EPLACE, "getting where one may only put");
  rank::expect(parc_initput(parc, &hidden, nullptr, 5, 0) == PARC_EINVAL, "a null pointer is a buffer");
  rank::expect(parc_initput(parc, nullptr, nullptr, 0, 0) == PARC_EINVAL, "a null pointer is a place");
  rank::expect(parc_initput(parc, &hidden, nullptr, 0, PARC_UNTAGGED) == PARC_EINVAL, "a put has a tag");
  // Its wait may return before it is known.
  const int code = parc_put(parc, &nowhere, &one, 1);
  rank::expect(code == PARC_OK || code == PARC_EPLACE, "a put into nothing gave %d", code);
  rank::expect_code(parc_quiet(parc), code == PARC_OK ? PARC_EPLACE : PARC_OK, "parc_quiet");
  if (code == PARC_OK)
    rank::expect(std::strstr(parc_error_detail(), "put of 1 bytes at 40 of window 8") != nullptr,
                 "parc_quiet names no put");
  rank::expect_code(parc_quiet(parc), PARC_OK, "parc_quiet");
  rank::expect_code(parc_barrier(parc), PARC_OK, "parc_barrier");
  rank::expect(std::count(closed, closed + 100, 1) == 100, "something was put where nobody may");
  rank::expect_code(parc_unexpose(parc, 9), PARC_OK, "parc_unexpose");
  rank::expect_code(parc_unexpose(parc, 10), PARC_OK, "parc_unexpose");
  parc_free(parc, closed);
}

void all(parc_context* parc) {
  const Exposed exposed(parc);
  put_and_tell(parc, exposed);
  put_pieces(parc, exposed);
  put_rows(parc, exposed);
  put_many(parc, exposed);
  put_and_be_quiet(parc);
  count(parc, exposed);
  put_where_nothing_is(parc, exposed);
  rank::expect_code(parc_barrier(parc), PARC_OK, "parc_barrier");
}

// Everybody puts into slots of everybody, and tells of each by a message; a slot is put into again when its
// reader has said that it has seen it. That answer is as long as a wait needs that is released early.
class Random {
public:
  Random(parc_context* parc, const Exposed& exposed, unsigned seed, std::uint64_t rounds)
      : parc_(parc), exposed_(exposed), rounds_(rounds),
        random_(seed * 1000 + static_cast<unsigned>(rank::number)) {
    answer_ = static_cast<unsigned char*>(parc_alloc(parc, answer_bytes));
    text_ = static_cast<unsigned char*>(parc_alloc(parc, slot_bytes));
    std::memset(answer_, 0, answer_bytes);
  }

  void run() {
    for (std::uint64_t round = 0; round < rounds_ + slots; ++round) {
      for (int peer = 0; peer < parc_size(parc_); ++peer) {
        if (peer == rank::number) continue;
        if (round >= slots) await_answer(peer);
        if (round < rounds_) put(peer, round);
      }
      for (int peer = 0; peer < parc_size(parc_); ++peer)
        if (peer != rank::number && round < rounds_) take(peer, round);
    }
    rank::expect_code(parc_barrier(parc_), PARC_OK, "parc_barrier");
    parc_free(parc_, answer_);
    parc_free(parc_, text_);
  }

private:
  static constexpr std::uint64_t slots = 4;
  static constexpr std::size_t slot_bytes = stripe / slots, answer_bytes = 8192;

  std::size_t size_below(std::size_t most) {
    return std::min<std::size_t>(random_() % most, random_() % most);
  }

  void put(int peer, std::uint64_t round) {
    const std::size_t length = random_() % 3 == 0 ? random_() % 300 : size_below(slot_bytes);
    std::vector<unsigned char> anywhere(length);
    unsigned char* const from = random_() % 2 == 0 ? anywhere.data() : text_;
    const std::uint64_t text = text_of(rank::number, round);
    rank::fill(from, length, text);
    const parc_place to = place_of(peer, round % slots * slot_bytes);
    const unsigned flags =
        (random_() % 2 == 0 ? PARC_FROM_END : 0) | (random_() % 4 == 0 ? PARC_SYNCHRONOUS : 0);
    const parc_op put = parc_initput(parc_, &to, from, length, flags);
    rank::expect(put > 0, "parc_initput gave %d", static_cast<int>(put));
    const bool waits = random_() % 2 == 0;
    if (waits) rank::expect_code(parc_wait(parc_, put, nullptr), PARC_OK, "the wait for a put");
    if (waits && length != 0) std::memset(from, 0xee, length);
    if (random_() % 4 == 0) {
      std::vector<unsigned char> got(length);
      rank::expect_code(parc_get(parc_, &to, got.data(), length), PARC_OK, "getting what was put");
      rank::expect_code(parc_settle(parc_, got.data(), length), PARC_OK, "parc_settle");
      rank::expect(rank::filled(got.data(), length, text), "a get does not see what its program has put");
    }
    std::vector<std::uint64_t> message(random_() % 5 == 0 ? 1 + size_below(20'000) : 1);
    message[0] = length;
    const parc_op write = parc_initwrite(parc_, peer, 1, message.data(), message.size() * sizeof message[0]);
    rank::expect_code(parc_wait(parc_, write, nullptr), PARC_OK, "telling of a put");
    if (!waits) rank::expect_code(parc_wait(parc_, put, nullptr), PARC_OK, "the wait for a put");
  }

  void take(int peer, std::uint64_t round) {
    std::vector<std::uint64_t> message(20'000);
    rank::expect_code(parc_read(parc_, peer, 1, message.data(), message.size() * sizeof message[0], nullptr),
                      PARC_OK, "hearing of a put");
    expect_put(exposed_, peer, round % slots * slot_bytes, message[0], round);
    rank::expect_code(parc_write(parc_, peer, 2, answer_, answer_bytes), PARC_OK, "answering");
  }

  void await_answer(int peer) {
    auto* const in = static_cast<unsigned char*>(parc_alloc(parc_, answer_bytes));
    rank::expect_code(parc_read(parc_, peer, 2, in, answer_bytes, nullptr), PARC_OK, "hearing an answer");
    parc_free(parc_, in);
  }

  parc_context* parc_;
  const Exposed& exposed_;
  std::uint64_t rounds_;
  std::minstd_rand random_;
  unsigned char *answer_, *text_;
};

// A barrier of four does not go back either; rank 2 tells that the next may come.
void one_way(parc_context* parc) {
  const Exposed exposed(parc);
  constexpr std::size_t length = stripe;
  if (rank::number == 0) tell(parc, 1, 1);
  rank::expect_code(parc_set_release(parc, PARC_RELEASE_FULL), PARC_OK, "parc_set_release");
  std::vector<unsigned char> text(length);
  if (rank::number == 1) hear(parc, 0, 1);
  for (std::uint64_t version = 0; version < 500; ++version) {
    if (rank::number == 0) {
      rank::fill(text.data(), length, text_of(0, version));
      const parc_place to = place_of(1, 0);
      const parc_op put = parc_initput(parc, &to, text.data(), length, 0);
      tell(parc, 1, 2);
      rank::expect_code(parc_wait(parc, put, nullptr), PARC_OK, "the wait for a put");
      hear(parc, 2, 3);
    } else if (rank::number == 1) {
      hear(parc, 0, 2);
      expect_put(exposed, 0, 0, length, version);
      tell(parc, 2, 3);
    } else if (rank::number == 2) {
      hear(parc, 1, 3);
      tell(parc, 0, 3);
    }
  }
  rank::expect_code(parc_barrier(parc), PARC_OK, "parc_barrier");
}

// It says in its window where its process is.
void stopped(parc_context* parc) {
  const Exposed exposed(parc);
  constexpr std::size_t at = 4096;
  if (rank::number != 0) {
    *reinterpret_cast<volatile int*>(exposed.memory) = getpid();
    raise(SIGSTOP); // and calls parc again only when it is woken
    rank::expect(rank::filled(exposed.of(0) + at, 500'000, text_of(0, 19)), "what was put is not there");
    return;
  }
  std::vector<unsigned char> text(500'000);
  for (int peer = 1; peer < parc_size(parc); ++peer) {
    const parc_place whose{peer, window, 0}, to = place_of(peer, at);
    int process = 0;
    while (process == 0)
      rank::expect_code(parc_get(parc, &whose, &process, sizeof process), PARC_OK, "getting a number");
    for (std::uint64_t version = 0; version < 20; ++version) {
      rank::fill(text.data(), text.size(), text_of(0, version));
      rank::expect_code(parc_put(parc, &to, text.data(), text.size()), PARC_OK,
                        "putting into a stopped rank");
    }
    rank::expect_code(parc_quiet(parc), PARC_OK, "parc_quiet");
    kill(process, SIGCONT);
  }
}

// Into a program that has been spawned, and is killed.
void killed(parc_context* parc, const char* program, const char* host) {
  const char* const arguments[] = {program, "exposed", own ? "own" : nullptr, nullptr};
  int peer = -1;
  rank::expect_code(parc_spawn(parc, arguments, 1, host, &peer), PARC_OK, "parc_spawn");
  hear(parc, peer, 0);
  const std::vector<unsigned char> text(100'000);
  rank::expect_code(parc_kill(parc, peer, SIGKILL), PARC_OK, "parc_kill");
  int code = PARC_OK;
  for (std::size_t i = 0; code == PARC_OK; ++i) {
    const parc_place to{peer, window, i % 10 * text.size()};
    code = parc_put(parc, &to, text.data(), i % 3 == 0 ? 8 : text.size());
    if (code == PARC_OK && i % 7 == 0) code = parc_quiet(parc);
  }
  rank::expect_code(code, PARC_EPEER, "putting into who is killed");
  rank::expect(std::strstr(parc_error_detail(), "put of ") != nullptr, "no put is named");
  (void)parc_quiet(parc);
  rank::expect_code(parc_quiet(parc), PARC_OK, "parc_quiet");
  const parc_op ends = parc_initexit(parc, peer, 0);
  rank::expect_code(parc_wait(parc, ends, nullptr), PARC_OK, "waiting for its end");
}

void be_killed(parc_context* parc) {
  const Exposed exposed(parc);
  tell(parc, parc_parent(parc), 0);
  for (;;) pause();
}

} // namespace

int main(int argc, char** argv) {
  parc_context* const parc = rank::open();
  const std::string_view what = argc > 1 ? argv[1] : "all";
  own = std::string_view(argv[argc - 1]) == "own";
  if (what == "stopped") {
    stopped(parc);
  } else if (what == "killed") {
    killed(parc, argv[0], argv[2]);
  } else if (what == "exposed") {
    be_killed(parc);
  } else if (what == "one-way") {
    one_way(parc);
  } else if (what == "random") {
    const Exposed exposed(parc);
    Random(parc, exposed, static_cast<unsigned>(std::stoul(argv[2])), std::stoul(argv[3])).run();
  } else {
    all(parc);
  }
  rank::expect_code(parc_close(parc), PARC_OK, "parc_close");
}
