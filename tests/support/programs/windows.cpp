// SPDX-License-Identifier: BSD-3-Clause
// Two ranks or more, and their windows. "all": each gets from each, all that a get may be asked for and all
// that it is refused for. "stopped": rank 0 gets from ranks that are stopped, which they have told it of in
// their windows alone. "killed HOST": gets from a program that it has spawned there, until that is no more.
// With "own" behind that, windows are in malloc's memory.
#include "tests/support/programs/rank.hpp"

#include <algorithm>
#include <array>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <string_view>
#include <sys/types.h>
#include <unistd.h>
#include <utility>
#include <vector>

namespace {

constexpr std::uint64_t window = 7;
constexpr std::size_t bytes = 3 << 20;
bool own = false;

struct Exposed {
  explicit Exposed(parc_context* context)
      : parc(context), memory(own ? std::malloc(bytes) : parc_alloc(context, bytes)) {
    rank::expect(memory != nullptr, "there is no memory");
    rank::fill(memory, bytes, static_cast<std::uint64_t>(rank::number));
    rank::expect_code(parc_expose(parc, window, memory, bytes, PARC_MAY_GET), PARC_OK, "parc_expose");
    rank::expect_code(parc_barrier(parc), PARC_OK, "parc_barrier");
  }
  Exposed(const Exposed&) = delete;
  Exposed& operator=(const Exposed&) = delete;
  ~Exposed() {
    (void)parc_unexpose(parc, window);
    own ? std::free(memory) : parc_free(parc, memory);
  }
  parc_context* parc;
  void* memory;
};

void expect_window(const void* got, std::size_t length, int peer, std::size_t offset) {
  rank::expect(rank::filled(got, length, static_cast<std::uint64_t>(peer), offset),
               "%zu bytes at %zu of rank %d are wrong", length, offset, peer);
}

void get_from(parc_context* parc, int peer) {
  for (const std::size_t length : {std::size_t{0}, std::size_t{1}, std::size_t{8}, std::size_t{192},
                                   std::size_t{4096}, std::size_t{100'000}, bytes - 12'345}) {
    for (const unsigned flags : {0u, PARC_FROM_END}) {
      const parc_place from{peer, window, 12'345};
      std::vector<unsigned char> anywhere(length);
      rank::expect_code(parc_get(parc, &from, anywhere.data(), length), PARC_OK, "parc_get");
      expect_window(anywhere.data(), length, peer, from.offset);
      void* const shared = parc_alloc(parc, length);
      parc_status status{};
      const parc_op get = parc_initget(parc, &from, shared, length, flags);
      rank::expect(get > 0, "parc_initget gave %d", static_cast<int>(get));
      rank::expect_code(parc_wait(parc, get, &status), PARC_OK, "the wait for a get");
      expect_window(shared, length, peer, from.offset);
      parc_free(parc, shared);
      rank::expect(status.source == peer && status.length == length && status.context == 0 &&
                       status.tag == static_cast<int>(window) && status.data == 0 && status.has_data == 0,
                   "a get of %zu bytes from %d has a wrong status", length, peer);
    }
  }
}

void get_pieces(parc_context* parc, int peer) {
  std::array<unsigned char, 3000> first{}, second{};
  const iovec pieces[] = {
      {first.data(), 1000}, {nullptr, 0}, {second.data(), second.size()}, {first.data() + 1000, 2000}};
  const parc_place from{peer, window, 5};
  const parc_op get = parc_initgetv(parc, &from, pieces, 4, PARC_QUEUED);
  rank::expect(get > 0, "parc_initgetv gave %d", static_cast<int>(get));
  parc_completion done;
  rank::expect(parc_completions(parc, &done, 1, -1) == 1 && done.operation == get &&
                   done.status.error == PARC_OK,
               "a queued get was not told");
  expect_window(first.data(), 1000, peer, 5);
  expect_window(second.data(), second.size(), peer, 1005);
  expect_window(first.data() + 1000, 2000, peer, 4005);
}

// A matrix's columns, short rows and long ones, upwards, downwards, over each other, and one that is all.
void get_rows(parc_context* parc, int peer) {
  struct Case {
    std::size_t offset, row, count;
    std::int64_t stride;
  };
  for (const Case& c : {Case{16, 8, 20'000, 128},
                        {5, 3, 7, 11},
                        {2'000'000, 5000, 100, -16'384},
                        {100, 4096, 50, 1000},
                        {77, 64, 1000, 0},
                        {bytes - 8, 8, 1, INT64_MIN},
                        {bytes - 1, 1, 50'000, -1},
                        {0, 700, 4000, 701}}) {
    std::vector<unsigned char> got(c.row * c.count);
    const std::size_t half = got.size() / 2;
    const iovec pieces[] = {{got.data(), half}, {got.data() + half, got.size() - half}};
    const parc_place from{peer, window, c.offset};
    for (const unsigned flags : {0u, PARC_FROM_END}) {
      std::ranges::fill(got, static_cast<unsigned char>(0));
      const parc_op get = parc_initget_rows(parc, &from, c.row, c.stride, pieces, 2, flags);
      rank::expect(get > 0, "parc_initget_rows gave %d", static_cast<int>(get));
      rank::expect_code(parc_wait(parc, get, nullptr), PARC_OK, "the wait for rows");
      for (std::size_t i = 0; i < c.count; ++i)
        expect_window(got.data() + i * c.row, c.row, peer, c.offset + i * static_cast<std::size_t>(c.stride));
    }
  }
}

// As many as there are places for reads, and more.
void get_many(parc_context* parc, int peer) {
  constexpr std::size_t count = 3000, length = 100;
  std::vector<unsigned char> to(count * length);
  std::vector<parc_op> gets(count);
  for (std::size_t i = 0; i < count; ++i) {
    const parc_place from{peer, window, i * length};
    gets[i] = parc_initget(parc, &from, to.data() + i * length, length, 0);
  }
  rank::expect_code(parc_waitall(parc, static_cast<int>(count), gets.data(), nullptr), PARC_OK, "many gets");
  expect_window(to.data(), to.size(), peer, 0);
}

void expect_refused(parc_context* parc, const parc_place& from, std::size_t length, int code,
                    const char* sentence) {
  std::vector<unsigned char> to(length);
  rank::expect_code(parc_get(parc, &from, to.data(), length), code, sentence);
  rank::expect(std::strstr(parc_error_detail(), sentence) != nullptr, "the detail says nothing of \"%s\"",
               sentence);
}

void ask_for_what_is_not_there(parc_context* parc, int peer) {
  expect_refused(parc, {peer, 8, 0}, 1, PARC_EPLACE, "window 8");
  expect_refused(parc, {peer, window, bytes - 9}, 10, PARC_EPLACE, "10 bytes at 3145719 of window 7");
  expect_refused(parc, {peer, window, bytes + 1}, 0, PARC_EPLACE, "window 7");
  expect_refused(parc, {peer, window, UINT64_MAX}, 2, PARC_EPLACE, "window 7");
  expect_refused(parc, {parc_size(parc) + 5, window, 0}, 1, PARC_EINVAL, "there is no rank");
  expect_refused(parc, {PARC_ANY_SOURCE, window, 0}, 1, PARC_EINVAL, "needs a rank");
  const parc_place from{peer, window, 0};
  rank::expect(parc_initget(parc, &from, nullptr, 5, 0) == PARC_EINVAL, "a null pointer is a buffer");
  rank::expect(parc_initget(parc, nullptr, nullptr, 0, 0) == PARC_EINVAL, "a null pointer is a place");
  std::array<unsigned char, 30> to{};
  const iovec piece{to.data(), to.size()};
  const auto rows = [&](std::size_t row, std::int64_t stride, std::size_t offset) {
    const parc_place at{peer, window, offset};
    const parc_op get = parc_initget_rows(parc, &at, row, stride, &piece, 1, 0);
    return get < 0 ? static_cast<int>(get) : parc_wait(parc, get, nullptr);
  };
  for (const std::size_t row : {std::size_t{0}, std::size_t{7}, std::size_t{31}, SIZE_MAX})
    rank::expect_code(rows(row, 100, 0), PARC_EINVAL, "what is no rows");
  rank::expect_code(rows(10, 100, bytes - 209), PARC_EPLACE, "rows beyond the window's end");
  rank::expect_code(rows(10, -100, 199), PARC_EPLACE, "rows before its beginning");
  rank::expect_code(rows(10, INT64_MIN, 0), PARC_EPLACE, "rows that are far apart");
  rank::expect_code(rows(1, INT64_MAX, UINT64_MAX), PARC_EPLACE, "rows behind all memory");
  rank::expect(parc_initget_rows(parc, &from, 10, 10, nullptr, 1, 0) == PARC_EINVAL, "null is a list");
  rank::expect(parc_initget_rows(parc, nullptr, 10, 10, &piece, 1, 0) == PARC_EINVAL, "null is a place");
  rank::expect(parc_initget(parc, &from, nullptr, 0, PARC_SYNCHRONOUS) == PARC_EINVAL,
               "a get is synchronous");
}

void expose_what_cannot_be(parc_context* parc, void* memory) {
  std::vector<unsigned char> not_shared(1 << 20);
  const auto expose = [&](std::uint64_t number, void* what, std::size_t length, unsigned rights) {
    return parc_expose(parc, number, what, length, rights);
  };
  rank::expect_code(expose(window, memory, 1, PARC_MAY_GET), PARC_EINVAL, "a number that is in use");
  rank::expect_code(expose(8, memory, 1, 0), PARC_EINVAL, "no rights");
  rank::expect_code(expose(8, memory, 1, 64 | PARC_MAY_GET), PARC_EINVAL, "unknown rights");
  rank::expect_code(expose(8, nullptr, 1, PARC_MAY_GET), PARC_EINVAL, "a null pointer");
  rank::expect_code(expose(8, reinterpret_cast<void*>(0x1000), 1, PARC_MAY_GET), PARC_ENOMEM,
                    "memory that is not there");
  rank::expect_code(expose(8, memory, SIZE_MAX, PARC_MAY_GET), PARC_ENOMEM, "more than there is");
  rank::expect_code(parc_unexpose(parc, 8), PARC_EINVAL, "a window that there is not");
  constexpr std::uint64_t many = 3000;
  for (std::uint64_t number = 1000; number < 1000 + many; ++number)
    rank::expect_code(expose(number, own && number % 2 != 0 ? not_shared.data() : memory, 1, PARC_MAY_GET),
                      PARC_OK, "one of many windows");
  for (std::uint64_t number = 1000; number < 1000 + many; ++number)
    rank::expect_code(parc_unexpose(parc, number), PARC_OK, "taking back one of many windows");
}

// A get that was released early fails behind its wait.
int error_of_lost = PARC_OK;
void note_lost(void*, const parc_lost* lost) {
  error_of_lost = lost->error;
}
int get_whole(parc_context* parc, const parc_place& from, std::vector<unsigned char>& to) {
  error_of_lost = PARC_OK;
  const int code = parc_get(parc, &from, to.data(), to.size());
  rank::expect_code(parc_settle(parc, to.data(), to.size()), PARC_OK, "parc_settle");
  return code != PARC_OK ? code : error_of_lost;
}

// What was exposed and is no more, while others ask for it all the time.
void take_back(parc_context* parc, int peer) {
  rank::expect_code(parc_on_lost(parc, note_lost, nullptr), PARC_OK, "parc_on_lost");
  const parc_place from{peer, 9, 0};
  std::vector<unsigned char> to(300'000);
  void* const mine = parc_alloc(parc, to.size());
  for (std::uint64_t version = 100; version < 200; ++version) {
    rank::fill(mine, to.size(), version);
    rank::expect_code(parc_expose(parc, 9, mine, to.size(), PARC_MAY_GET), PARC_OK, "exposing it again");
    const int code = get_whole(parc, from, to);
    rank::expect(code == PARC_OK || code == PARC_EPLACE, "a get meanwhile gave %d", code);
    rank::expect_code(parc_unexpose(parc, 9), PARC_OK, "taking it back");
    std::memset(mine, 0, to.size()); // which no get sees
    if (code == PARC_OK)
      rank::expect(std::ranges::find_if(to, [](unsigned char c) { return c != 0; }) != to.end(),
                   "a get saw what was stored after its window was taken back");
  }
  parc_free(parc, mine);
}

// What a message tells of is there for a get behind it, also where its read was released before it had begun.
void follow_messages(parc_context* parc, void* exposed) {
  const int next = (rank::number + 1) % parc_size(parc),
            before = (next + parc_size(parc) - 2) % parc_size(parc);
  constexpr std::size_t page = 4096, at = bytes - sizeof(std::uint64_t);
  void* const in = parc_alloc(parc, 2 * page);
  void* const out = parc_alloc(parc, 2 * page);
  auto* const version = reinterpret_cast<volatile std::uint64_t*>(static_cast<char*>(exposed) + at);
  for (std::uint64_t i = 1; i <= 100; ++i) {
    if (i % 2 == static_cast<std::uint64_t>(rank::number) % 2) usleep(500);
    *version = i;
    const parc_op write = parc_initwrite(parc, before, 3, out, 2 * page);
    rank::expect_code(parc_read(parc, next, 3, in, 2 * page, nullptr), PARC_OK, "hearing of a version");
    const parc_place from{next, window, at};
    std::uint64_t got = 0;
    rank::expect_code(parc_get(parc, &from, &got, sizeof got), PARC_OK, "getting a version");
    rank::expect(got >= i, "version %llu of %d came behind the news of %llu",
                 static_cast<unsigned long long>(got), next, static_cast<unsigned long long>(i));
    rank::expect_code(parc_wait(parc, write, nullptr), PARC_OK, "telling of a version");
  }
  parc_free(parc, in);
  parc_free(parc, out);
}

// A read into a window is there when its wait returns: others get it from there.
void relay(parc_context* parc, void* exposed) {
  const int next = (rank::number + 1) % parc_size(parc),
            before = (next + parc_size(parc) - 2) % parc_size(parc);
  constexpr std::size_t length = 1 << 20;
  std::vector<unsigned char> out(length), got(length);
  for (std::uint64_t i = 1; i <= 10; ++i) {
    rank::fill(out.data(), length, 1000 * i + static_cast<std::uint64_t>(rank::number));
    const parc_op write = parc_initwrite(parc, next, 4, out.data(), length);
    rank::expect_code(parc_read(parc, before, 4, exposed, length, nullptr), PARC_OK, "reading into a window");
    const parc_op told = parc_initwrite(parc, next, 5, nullptr, 0);
    rank::expect_code(parc_read(parc, before, 5, nullptr, 0, nullptr), PARC_OK, "hearing of a relay");
    const int of = (before + parc_size(parc) - 1) % parc_size(parc);
    const parc_place from{before, window, 0};
    rank::expect_code(parc_get(parc, &from, got.data(), length), PARC_OK, "getting what was relayed");
    rank::expect(rank::filled(got.data(), length, 1000 * i + static_cast<std::uint64_t>(of)),
                 "what was read into a window of %d is not there", before);
    rank::expect_code(parc_wait(parc, write, nullptr), PARC_OK, "writing into a window");
    rank::expect_code(parc_wait(parc, told, nullptr), PARC_OK, "telling of a relay");
    rank::expect_code(parc_barrier(parc), PARC_OK, "parc_barrier");
  }
}

void all(parc_context* parc) {
  const Exposed exposed(parc);
  for (int peer = 0; peer < parc_size(parc); ++peer) get_from(parc, peer);
  const int next = (rank::number + 1) % parc_size(parc);
  get_pieces(parc, next);
  get_rows(parc, next);
  get_many(parc, next);
  ask_for_what_is_not_there(parc, next);
  expose_what_cannot_be(parc, exposed.memory);
  take_back(parc, next);
  parc_barrier(parc);
  follow_messages(parc, exposed.memory);
  parc_barrier(parc);
  relay(parc, exposed.memory);
  parc_barrier(parc);
  rank::expect_code(parc_unexpose(parc, window), PARC_OK, "parc_unexpose");
  parc_barrier(parc);
  expect_refused(parc, {next, window, 0}, 1, PARC_EPLACE, "window 7");
  parc_barrier(parc);
}

// Where its process is.
void stopped(parc_context* parc) {
  const Exposed exposed(parc);
  auto* const number = static_cast<volatile int*>(exposed.memory);
  if (rank::number != 0) {
    *number = getpid();
    raise(SIGSTOP); // and calls parc again only when it is woken
    return;
  }
  for (int peer = 1; peer < parc_size(parc); ++peer) {
    const parc_place whose{peer, window, 0};
    int process = 0;
    const auto told = [&] {
      return !rank::filled(&process, sizeof process, static_cast<std::uint64_t>(peer));
    };
    do rank::expect_code(parc_get(parc, &whose, &process, sizeof process), PARC_OK, "getting a number");
    while (!told());
    std::vector<unsigned char> to(1 << 20);
    for (int i = 0; i < 20; ++i) {
      const parc_place from{peer, window, sizeof process};
      rank::expect_code(parc_get(parc, &from, to.data(), to.size()), PARC_OK, "getting from a stopped rank");
      expect_window(to.data(), to.size(), peer, sizeof process);
    }
    kill(process, SIGCONT);
  }
}

// Of a program that has been spawned, and is killed.
void killed(parc_context* parc, const char* program, const char* host) {
  const char* const arguments[] = {program, "exposed", own ? "own" : nullptr, nullptr};
  int peer = -1;
  rank::expect_code(parc_spawn(parc, arguments, 1, host, &peer), PARC_OK, "parc_spawn");
  rank::expect_code(parc_read(parc, peer, 0, nullptr, 0, nullptr), PARC_OK, "hearing of a window");
  const parc_place whose{peer, window, 0};
  std::vector<unsigned char> to(64 * 100'000);
  std::vector<parc_op> gets(64);
  bool alive = true;
  for (int code = PARC_OK; code != PARC_EPEER;) {
    for (std::size_t i = 0; i < gets.size(); ++i)
      gets[i] = parc_initget(parc, &whose, to.data() + i * 100'000, 100'000, 0);
    if (std::exchange(alive, false)) rank::expect_code(parc_kill(parc, peer, SIGKILL), PARC_OK, "parc_kill");
    for (std::size_t i = 0; i < gets.size(); ++i) {
      code = parc_wait(parc, gets[i], nullptr);
      rank::expect(code == PARC_OK || code == PARC_EPEER, "a get from who is killed gave %d", code);
      if (code == PARC_OK)
        rank::expect(rank::filled(to.data() + i * 100'000, 100'000, 0), "a get from who is killed is wrong");
    }
  }
  const parc_op ends = parc_initexit(parc, peer, 0);
  rank::expect_code(parc_wait(parc, ends, nullptr), PARC_OK, "waiting for its end");
}

void be_killed(parc_context* parc) {
  const Exposed exposed(parc);
  rank::expect_code(parc_write(parc, parc_parent(parc), 0, nullptr, 0), PARC_OK, "telling of a window");
  for (;;) pause();
}

} // namespace

int main(int argc, char** argv) {
  parc_context* const parc = rank::open();
  const std::string_view what = argc > 1 ? argv[1] : "all";
  own = std::string_view(argv[argc - 1]) == "own";
  if (what == "stopped")
    stopped(parc);
  else if (what == "killed")
    killed(parc, argv[0], argv[2]);
  else if (what == "exposed")
    be_killed(parc);
  else
    all(parc);
  rank::expect_code(parc_close(parc), PARC_OK, "parc_close");
}
