// SPDX-License-Identifier: BSD-3-Clause
// Gets whose waits are released early.
// Usage: early_gets CASE FILE [KIND]: rank 0 gets from rank 1 when FILE is there, which is when the test has
// stopped that one's kernel, and says "released" when its wait has returned: what it got is not here then.
// CASE is a function below, KIND says where its buffer lies: arena, heap, bss.
// Usage: early_gets random SEED ROUNDS [KIND]: any number of ranks, which get from each other's windows and
// touch what they got in any order, whatever they have declared, and store into their windows whenever they
// may.
#include "tests/support/programs/rank.hpp"

#include <algorithm>
#include <array>
#include <cstring>
#include <random>
#include <string>
#include <string_view>
#include <sys/uio.h>
#include <thread>
#include <unistd.h>
#include <utility>
#include <vector>

RANK_WITHOUT_LEAK_CHECK

namespace {

constexpr std::uint64_t window = 7, flag_window = 9;
constexpr std::size_t page = 4096, bytes = 1024 * page;
parc_context* parc = nullptr;
const char* file = nullptr;
constexpr parc_envelope to_asker{0, 0, 0, 0};
unsigned char in_bss[bytes + 3 * page];

unsigned char* memory(std::string_view kind) {
  if (kind == "bss") return in_bss + page;
  if (kind == "arena") return static_cast<unsigned char*>(parc_alloc(parc, bytes));
  return static_cast<unsigned char*>(std::malloc(bytes + 2 * page)) + page;
}

unsigned char* expose(std::uint64_t version) {
  auto* const own = static_cast<unsigned char*>(parc_alloc(parc, bytes));
  rank::fill(own, bytes, version);
  rank::expect_code(parc_expose(parc, window, own, bytes, PARC_MAY_GET), PARC_OK, "parc_expose");
  rank::expect_code(parc_barrier(parc), PARC_OK, "parc_barrier");
  return own;
}

parc_release_counts counts() {
  parc_release_counts counts;
  rank::expect_code(parc_get_release_counts(parc, &counts), PARC_OK, "counts");
  return counts;
}

std::uint64_t faults_that_waited() {
  const parc_release_counts all = counts();
  return all.faults - all.late_faults;
}

std::uint64_t released() {
  return counts().released;
}

void await_file() {
  std::printf("ready\n");
  std::fflush(stdout);
  while (access(file, F_OK) != 0) usleep(1000);
}

void say_released(std::uint64_t waits) {
  rank::expect(released() == waits, "%llu waits were released, not %llu",
               static_cast<unsigned long long>(released()), static_cast<unsigned long long>(waits));
  std::printf("released\n");
  std::fflush(stdout);
}

void expect_bytes(const unsigned char* got, std::size_t length, std::uint64_t version, std::size_t offset) {
  rank::expect(rank::filled(got, length, version, offset), "%zu bytes at %zu are not those of version %llu",
               length, offset, static_cast<unsigned long long>(version));
}

// Its edges lie beside nothing that is used meanwhile.
// From the pages in the middle on, where nothing is asked for first.
void touch(const unsigned char* got, std::uint64_t version) {
  for (std::size_t i = bytes / 2; i < bytes; i += page) expect_bytes(got + i, page, version, i);
  for (std::size_t i = bytes / 2; i > 0; i -= page) expect_bytes(got + i - page, page, version, i - page);
}

// Sooner done than anything comes.
void glance(const volatile unsigned char* at) {
  (void)*at;
}

void get_whole(unsigned char* to) {
  const parc_place from{1, window, 0};
  rank::expect_code(parc_get(parc, &from, to, bytes), PARC_OK, "parc_get");
}

void touched(unsigned char* in) {
  get_whole(in);
  say_released(1);
  touch(in, 1);
}

// Who hears of it may change what it gets.
void told(unsigned char* in) {
  get_whole(in);
  say_released(1);
  const parc_op write = parc_initwrite(parc, 1, 0, nullptr, 0);
  touch(in, 1);
  rank::expect_code(parc_wait(parc, write, nullptr), PARC_OK, "the wait for a write");
}

// So may who sees what is put; and a get behind that sees it.
void put(unsigned char* in) {
  get_whole(in);
  say_released(1);
  const parc_place flag{1, flag_window, 0};
  const std::uint64_t one = 1;
  std::uint64_t seen = 0;
  rank::expect_code(parc_put(parc, &flag, &one, sizeof one), PARC_OK, "parc_put");
  rank::expect_code(parc_get(parc, &flag, &seen, sizeof seen), PARC_OK, "getting what was put");
  rank::expect(seen == one, "a get passes a put that is kept");
  touch(in, 1);
}

// A write that waits for its read hears of it.
void answered(unsigned char* in) {
  get_whole(in);
  say_released(1);
  rank::expect_code(parc_read(parc, 1, 0, nullptr, 0, nullptr), PARC_OK, "parc_read");
  touch(in, 1);
}

// Whose lock it had when it got that.
void unlocked(unsigned char* in) {
  get_whole(in);
  say_released(1);
  const parc_place lock{1, flag_window, 0};
  const parc_op unlock = parc_initatomic(parc, &lock, PARC_SWAP, 8, 1, 0, nullptr, 0);
  touch(in, 1);
  rank::expect_code(parc_wait(parc, unlock, nullptr), PARC_OK, "the wait for an unlock");
}

void with_a_barrier(unsigned char* in) {
  get_whole(in);
  say_released(1);
  rank::expect_code(parc_barrier(parc), PARC_OK, "parc_barrier");
  touch(in, 1);
}

// A flag in one's own window needs a strict point before it.
void strictly(unsigned char* in) {
  auto* const flag = static_cast<volatile std::uint64_t*>(parc_alloc(parc, sizeof(std::uint64_t)));
  *flag = 0;
  rank::expect_code(
      parc_expose(parc, flag_window, const_cast<std::uint64_t*>(flag), sizeof *flag, PARC_MAY_GET), PARC_OK,
      "parc_expose");
  get_whole(in);
  say_released(1);
  rank::expect_code(parc_quiet(parc), PARC_OK, "parc_quiet");
  *flag = 1;
  rank::expect_code(parc_read(parc, 1, 0, nullptr, 0, nullptr), PARC_OK, "parc_read");
  touch(in, 1);
}

void with_status(unsigned char* in) {
  const parc_place from{1, window, 0};
  const parc_op get = parc_initget(parc, &from, in, bytes, 0);
  parc_status status{};
  rank::expect_code(parc_wait(parc, get, &status), PARC_OK, "parc_wait");
  rank::expect(status.source == 1 && status.tag == static_cast<int>(window) && status.length == bytes &&
                   status.error == PARC_OK,
               "the status of a released get is wrong");
  say_released(1);
  touch(in, 1);
}

// Where it has whole pages nothing of others is guarded, and kernels alone bring the rest.
void beside_a_thread(unsigned char* in) {
  std::thread other([&] {
    get_whole(in);
    say_released(1);
    touch(in, 1);
  });
  other.join();
}

// A promise that is not kept costs waits alone.
void ordered(unsigned char* in, int order, bool up) {
  rank::expect_code(parc_set_order(parc, order), PARC_OK, "parc_set_order");
  get_whole(in);
  say_released(1);
  if (up)
    for (std::size_t i = 0; i < bytes; i += page) expect_bytes(in + i, page, 1, i);
  else // byte by byte, as its pages end elsewhere
    for (std::size_t i = bytes; i > 0; --i) expect_bytes(in + i - 1, 1, 1, i - 1);
}

// A touch waits for the strip that it lies on: however the bytes come, no more touches than strips wait. (One
// whose page has come since opens what is there.)
void in_strips(unsigned char* in, std::size_t strip) {
  rank::expect_code(parc_set_strip(parc, strip), PARC_OK, "parc_set_strip");
  get_whole(in);
  say_released(1);
  for (std::size_t i = 0; i < bytes; i += page) glance(in + i);
  touch(in, 1);
  const std::uint64_t waited = faults_that_waited(), most = (bytes - 1) / strip + 1;
  rank::expect(counts().faults >= 1 && waited <= most, "%llu touches waited",
               static_cast<unsigned long long>(waited));
}

// Behind the first of four they are a train, where an order says so: of those a touch waits for as many as
// make up a strip, here for all. Others are waited for one by one.
void in_a_train(unsigned char* in, int order, std::array<std::size_t, 4> touches) {
  const std::size_t each = bytes / touches.size();
  rank::expect_code(parc_set_order(parc, order), PARC_OK, "parc_set_order");
  rank::expect_code(parc_set_train(parc, 1), PARC_OK, "parc_set_train");
  rank::expect_code(parc_set_strip(parc, bytes), PARC_OK, "parc_set_strip");
  for (std::size_t i = 0; i < touches.size(); ++i) {
    const parc_place from{1, window, i * each};
    rank::expect_code(parc_get(parc, &from, in + i * each, each), PARC_OK, "parc_get");
  }
  say_released(touches.size());
  std::array<bool, touches.size()> waited{}; // or its page had come, whatever else of it has not
  std::uint64_t of_train = 0;
  for (const std::size_t get : touches) {
    const std::uint64_t before = faults_that_waited();
    glance(in + get * each + each / 2);
    waited[get] = faults_that_waited() != before;
    if (get != 0 && waited[get]) ++of_train;
  }
  rank::expect(order == PARC_ORDER_ANY || of_train <= 1, "a train is waited for %llu times",
               static_cast<unsigned long long>(of_train));
  for (const std::size_t get : touches) {
    const std::uint64_t before = faults_that_waited();
    expect_bytes(in + get * each, each, 1, get * each);
    rank::expect(!waited[get] || faults_that_waited() == before, "a get is not waited for whole");
  }
}

// Two of a page, which only its own words ask for.
void two_short(unsigned char* in) {
  std::array<parc_op, 2> gets{};
  for (std::size_t i = 0; i < gets.size(); ++i) {
    const parc_place from{1, window, 100 * i};
    gets[i] = parc_initget(parc, &from, in + page + 8 * i, 8, PARC_EARLY);
  }
  for (const parc_op get : gets) rank::expect_code(parc_wait(parc, get, nullptr), PARC_OK, "parc_wait");
  say_released(2);
  for (std::size_t i = 0; i < gets.size(); ++i) expect_bytes(in + page + 8 * i, 8, 1, 100 * i);
}

// A read into the memory of one waits for it, and others' calls use what it got.
void used_again(unsigned char* in) {
  get_whole(in);
  say_released(1);
  rank::expect_code(parc_settle(parc, in, page), PARC_OK, "parc_settle");
  expect_bytes(in, page, 1, 0);
  const parc_place from{1, window, page};
  rank::expect_code(parc_get(parc, &from, in, bytes - page), PARC_OK, "a get over another");
  expect_bytes(in, page, 1, page);
  expect_bytes(in + bytes - page, page, 1, bytes - page); // of the first
  expect_bytes(in + bytes / 2, page, 1, bytes / 2 + page);
}

void went_on(void*, const parc_lost* lost) {
  rank::expect(lost->error == PARC_EPLACE && lost->source == 1 && lost->tag == 8 && lost->length == bytes,
               "what was lost is told wrongly: %d of %d, tag %d", lost->error, lost->source, lost->tag);
  std::printf("went on\n");
}

void lost(unsigned char* in, bool handled) {
  if (handled) rank::expect_code(parc_on_lost(parc, went_on, nullptr), PARC_OK, "parc_on_lost");
  const parc_place from{1, 8, 0};
  rank::expect_code(parc_get(parc, &from, in, bytes), PARC_OK, "parc_get");
  say_released(1);
  rank::expect(in[page] == 0, "there is something");
}

void held(std::string_view what, std::string_view kind) {
  if (rank::number == 1) {
    const parc_op write =
        what == "answered" ? parc_initwritev(parc, &to_asker, nullptr, 0, PARC_SYNCHRONOUS) : PARC_OP_NULL;
    auto* const flag = static_cast<volatile std::uint64_t*>(parc_alloc(parc, sizeof(std::uint64_t)));
    *flag = 0;
    rank::expect_code(parc_expose(parc, flag_window, const_cast<std::uint64_t*>(flag), sizeof *flag,
                                  PARC_MAY_GET | PARC_MAY_PUT),
                      PARC_OK, "parc_expose");
    unsigned char* const own = expose(1);
    if (what == "put" || what == "unlocked") {
      while (*flag == 0) continue;
      rank::fill(own, bytes, 2);
    }
    if (what == "barrier") {
      rank::expect_code(parc_barrier(parc), PARC_OK, "parc_barrier");
      rank::fill(own, bytes, 2);
    }
    if (what == "strictly") {
      const parc_place told{0, flag_window, 0};
      for (std::uint64_t seen = 0; seen == 0;)
        if (const int code = parc_get(parc, &told, &seen, sizeof seen); code != PARC_OK)
          rank::expect_code(code, PARC_EPLACE, "parc_get"); // it is not exposed yet
      rank::fill(own, bytes, 2);
      rank::expect_code(parc_write(parc, 0, 0, nullptr, 0), PARC_OK, "parc_write");
    }
    if (what == "answered") {
      rank::expect_code(parc_wait(parc, write, nullptr), PARC_OK, "the wait for a synchronous write");
      rank::fill(own, bytes, 2);
    }
    if (what == "told") {
      rank::expect_code(parc_read(parc, 0, 0, nullptr, 0, nullptr), PARC_OK, "parc_read");
      rank::fill(own, bytes, 2);
    }
    rank::expect_code(parc_barrier(parc), PARC_OK, "the last barrier");
    return;
  }
  rank::expect_code(parc_set_release(parc, PARC_RELEASE_FULL), PARC_OK, "parc_set_release");
  unsigned char* const in = memory(kind);
  std::memset(in, 0, bytes);
  expose(0);
  await_file();
  if (what == "touched") touched(in);
  if (what == "told") told(in);
  if (what == "put") put(in);
  if (what == "answered") answered(in);
  if (what == "unlocked") unlocked(in);
  if (what == "barrier") with_a_barrier(in);
  if (what == "strictly") strictly(in);
  if (what == "status") with_status(in);
  if (what == "thread") beside_a_thread(in);
  if (what == "up" || what == "not-up") ordered(in, PARC_ORDER_UP, what == "up");
  if (what == "down") ordered(in, PARC_ORDER_DOWN, false);
  if (what == "strips") in_strips(in, bytes / 2);
  if (what == "strips-of-a-byte") in_strips(in, 1);
  if (what == "one-strip") in_strips(in, std::size_t{1} << 63);
  if (what == "train") in_a_train(in, PARC_ORDER_UP, {0, 1, 2, 3});
  if (what == "train-down") in_a_train(in, PARC_ORDER_DOWN, {0, 1, 2, 3});
  if (what == "not-a-train") in_a_train(in, PARC_ORDER_ANY, {0, 1, 2, 3});
  if (what == "train-first") in_a_train(in, PARC_ORDER_UP, {1, 2, 3, 0});
  if (what == "train-backwards") in_a_train(in, PARC_ORDER_UP, {3, 1, 2, 0});
  if (what == "short") two_short(in);
  if (what == "again") used_again(in);
  if (what == "lost") lost(in, false);
  if (what == "handled") lost(in, true);
  rank::expect_code(parc_barrier(parc), PARC_OK, "the last barrier");
}

struct Got {
  int peer;
  std::size_t offset, length;
  unsigned char* to;
};

// Version `round` of each window is what is got in that round: the barrier behind it holds back who is
// through with it until all that was released has come.
void play_round(std::mt19937_64& random, std::uint64_t round, unsigned char* in, unsigned early) {
  const auto any = [&](std::size_t most) {
    return std::uniform_int_distribution<std::size_t>(0, most)(random);
  };
  constexpr std::size_t strips[] = {0, 1, 3 * page, bytes / 8, SIZE_MAX};
  rank::expect_code(parc_set_strip(parc, strips[any(4)]), PARC_OK, "parc_set_strip");
  rank::expect_code(parc_set_train(parc, static_cast<int>(any(2))), PARC_OK, "parc_set_train");
  rank::expect_code(parc_set_order(parc, static_cast<int>(any(2))), PARC_OK, "parc_set_order"); // a lie
  std::vector<Got> gets;
  std::vector<parc_op> operations;
  const std::size_t each = bytes / 4;
  for (std::size_t i = 0; i < 4; ++i) {
    Got get{static_cast<int>(any(static_cast<std::size_t>(parc_size(parc)) - 1)), 0,
            any(3) == 0 ? any(2 * page) : any(each - page), in + i * each + any(1) * any(page)};
    get.offset = any(bytes - get.length);
    const std::size_t half = get.length / 2;
    const iovec pieces[] = {{get.to, half}, {get.to + half, get.length - half}};
    const parc_place from{get.peer, window, get.offset};
    operations.push_back(
        parc_initgetv(parc, &from, pieces, 2, (any(1) != 0 ? early : 0) | (any(1) != 0 ? PARC_FROM_END : 0)));
    gets.push_back(get);
    if (any(1) == 0) { // blocking, as most programs get
      rank::expect_code(parc_wait(parc, operations.back(), nullptr), PARC_OK, "parc_wait");
      operations.pop_back();
    }
  }
  rank::expect_code(parc_waitall(parc, static_cast<int>(operations.size()), operations.data(), nullptr),
                    PARC_OK, "parc_waitall");
  const auto check = [&] {
    for (int i = 0; i < 40; ++i) {
      const Got& get = gets[any(gets.size() - 1)];
      if (get.length == 0) continue;
      const std::size_t at = any(get.length - 1), length = std::min(get.length - at, any(2 * page) + 1);
      expect_bytes(get.to + at, length, 1000 * round + static_cast<std::uint64_t>(get.peer), get.offset + at);
    }
  };
  if (any(1) != 0) check();
  rank::expect_code(parc_barrier(parc), PARC_OK, "parc_barrier");
  check();
}

void play(std::uint64_t seed, std::uint64_t rounds, std::string_view kind) {
  std::mt19937_64 random(seed + static_cast<std::uint64_t>(rank::number));
  unsigned char* const in = memory(kind);
  unsigned char* const own = expose(0);
  const int level = seed % 2 == 0 ? PARC_RELEASE_FULL : PARC_RELEASE_GETS;
  rank::expect_code(parc_set_release(parc, level), PARC_OK, "parc_set_release");
  for (std::uint64_t round = 1; round <= rounds; ++round) {
    rank::fill(own, bytes, 1000 * round + static_cast<std::uint64_t>(rank::number));
    rank::expect_code(parc_barrier(parc), PARC_OK, "parc_barrier");
    play_round(random, round, in, level == PARC_RELEASE_FULL ? PARC_EARLY : 0);
  }
  rank::expect_code(parc_barrier(parc), PARC_OK, "the last barrier");
  std::printf("%llu\n", static_cast<unsigned long long>(released()));
}

} // namespace

int main(int argc, char** argv) {
  parc = rank::open();
  rank::expect(argc > 2, "usage: early_gets CASE FILE [KIND], early_gets random SEED ROUNDS [KIND]");
  const std::string_view what = argv[1];
  file = argv[2];
  if (what == "random")
    play(std::strtoull(argv[2], nullptr, 10), std::strtoull(argv[3], nullptr, 10),
         argc > 4 ? argv[4] : "arena");
  else
    held(what, argc > 3 ? argv[3] : "arena");
  rank::expect_code(parc_close(parc), PARC_OK, "parc_close");
}
