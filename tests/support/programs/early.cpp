// SPDX-License-Identifier: BSD-3-Clause
// Waits that are released early, one case at a time, between ranks 0 (sends) and 1 (reads). Rank 0 sends when
// FILE is there, and rank 1 says "released" when its wait has returned: so the test knows that the wait did
// not wait for the message.
// Usage: early CASE FILE [KIND]: CASE is a function below, KIND says where the reader's buffers lie: arena,
// heap, chunk (that malloc mapped), bss, data.
#include "tests/support/programs/rank.hpp"

#include <csetjmp>
#include <csignal>
#include <cstring>
#include <malloc.h>
#include <string>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

namespace {

constexpr std::size_t page = 4096, bytes = 100 * page;
parc_context* parc = nullptr;
const char* file = nullptr;

std::string kind = "arena"; // of the reader's buffers
unsigned char in_bss[3 * bytes];
unsigned char in_data[3 * bytes] = {1};

unsigned char* any_memory(std::size_t size) {
  if (kind == "bss") return in_bss + page;
  if (kind == "data") return in_data + page;
  if (kind == "arena") return static_cast<unsigned char*>(parc_alloc(parc, size));
  if (kind == "heap") mallopt(M_MMAP_THRESHOLD, 1 << 30);
  // No page shared with others: what is said before rank 0 sends would wait for them.
  auto* const block = static_cast<unsigned char*>(std::malloc(size + 2 * page));
  return block == nullptr ? nullptr : block + page;
}

unsigned char* memory(std::size_t size) {
  auto* const block = any_memory(size);
  rank::expect(block != nullptr, "no memory");
  std::memset(block, 0, size);
  return block;
}

void send_when_told(std::size_t length, std::uint64_t message) {
  auto* const out = memory(length);
  rank::fill(out, length, message);
  while (access(file, F_OK) != 0) usleep(1000);
  rank::expect_code(parc_write(parc, 1, 0, out, length), PARC_OK, "write");
}

void say_released(std::uint64_t waits) {
  parc_release_counts counts;
  rank::expect_code(parc_get_release_counts(parc, &counts), PARC_OK, "counts");
  rank::expect(counts.released == waits, "%llu waits were released, not %llu",
               static_cast<unsigned long long>(counts.released), static_cast<unsigned long long>(waits));
  std::printf("released\n");
  std::fflush(stdout);
}

// A read of `length` bytes whose wait has returned although nothing has been sent.
unsigned char* released(std::size_t length, unsigned char* at = nullptr) {
  unsigned char* const in = at != nullptr ? at : memory(length);
  rank::expect_code(parc_read(parc, 0, 0, in, length, nullptr), PARC_OK, "read");
  say_released(1);
  return in;
}

std::uint64_t faults() {
  parc_release_counts counts;
  rank::expect_code(parc_get_release_counts(parc, &counts), PARC_OK, "counts");
  return counts.faults;
}

void touch() {
  const unsigned char* const in = released(bytes);
  rank::expect(rank::filled(in + 50 * page, page, 7, 50 * page), "wrong bytes in the middle");
  rank::expect(faults() > 0, "a page that was not there was touched without a fault");
  rank::expect(rank::filled(in, bytes, 7), "wrong bytes");
}

// What the program stores comes after what the message brings.
void store() {
  unsigned char* const in = released(bytes);
  in[3 * page + 5] = 99;
  rank::expect(in[3 * page + 5] == 99 && rank::filled(in, 3 * page, 7), "the message overwrote a store");
  rank::expect_code(parc_settle(parc, nullptr, 0), PARC_OK, "settle");
  rank::expect(in[3 * page + 5] == 99 && rank::filled(in + 4 * page, bytes - 4 * page, 7, 4 * page),
               "the message overwrote a store later");
}

// A buffer that begins and ends in the middle of pages, and neighbours that share them.
void shared() {
  unsigned char* const block = memory(bytes + 2 * page);
  std::memset(block, 42, bytes + 2 * page);
  unsigned char* const in = released(bytes, block + 1000);
  rank::expect(block[999] == 42 && block[bytes + 1000] == 42, "a neighbour has changed");
  block[999] = 43;
  block[bytes + 1000] = 44;
  rank::expect(rank::filled(in, bytes, 7), "wrong bytes");
  rank::expect(block[999] == 43 && block[bytes + 1000] == 44, "a neighbour was overwritten");
}

// A second read into the buffer of the first: in the end the second's bytes are there.
void repost() {
  unsigned char* const in = released(bytes);
  rank::expect_code(parc_read(parc, 0, 0, in, bytes, nullptr), PARC_OK, "second read");
  rank::expect(rank::filled(in, bytes, 8), "not the second message");
}

// What is sent from a buffer that has yet to arrive is what arrives.
void forward() {
  unsigned char* const in = released(bytes);
  rank::expect_code(parc_write(parc, 0, 1, in, bytes), PARC_OK, "write");
}

void shorter() {
  unsigned char* const in = memory(2 * bytes);
  std::memset(in, 42, 2 * bytes);
  (void)released(2 * bytes, in);
  rank::expect(in[2 * bytes - 1] == 42, "bytes past the message have changed");
  rank::expect(rank::filled(in, bytes, 7), "wrong bytes");
}

void with_fork() {
  unsigned char* const in = released(bytes);
  const pid_t child = fork();
  if (child == 0) {
    const bool right = rank::filled(in, bytes, 7);
    if (kind != "arena") std::memset(in, 99, bytes); // the child's own; parc_alloc's is shared
    _exit(right ? 0 : 1);
  }
  int status = -1;
  rank::expect(waitpid(child, &status, 0) == child && status == 0, "the child saw other bytes");
  rank::expect(rank::filled(in, bytes, 7), "wrong bytes");
}

// A wait that must say how long the message is returns when that is known.
void with_status() {
  unsigned char* const in = memory(2 * bytes);
  std::printf("released\n");
  std::fflush(stdout);
  parc_status status;
  rank::expect_code(parc_read(parc, PARC_ANY_SOURCE, PARC_ANY_TAG, in, 2 * bytes, &status), PARC_OK, "read");
  rank::expect(status.source == 0 && status.tag == 0 && status.length == bytes, "wrong status");
  rank::expect(rank::filled(in, bytes, 7), "wrong bytes");
}

void handle_loss(void* argument, const parc_lost* lost) {
  *static_cast<parc_lost*>(argument) = *lost;
}

void lost(bool handled) {
  parc_lost seen{};
  if (handled) rank::expect_code(parc_on_lost(parc, handle_loss, &seen), PARC_OK, "on_lost");
  const volatile unsigned char* const in = released(bytes);
  (void)in[17 * page];
  rank::expect(handled, "the program went on without its message");
  rank::expect(seen.buffer == in && seen.length == bytes && seen.error == PARC_EPEER && seen.source == 0,
               "the loss was described otherwise");
  std::printf("went on\n");
}

// The crash is the usual one, although ours is the first handler.
void wild(const volatile unsigned char* in) {
  void* const none = mmap(nullptr, page, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  (void)in[0];
  std::printf("wild\n");
  std::fflush(stdout);
  *static_cast<volatile unsigned char*>(none) = 1;
}

sigjmp_buf back;
void* volatile fault_seen = nullptr;
void own_handler(int, siginfo_t* info, void*) {
  fault_seen = info->si_addr;
  siglongjmp(back, 1);
}

void own_faults() {
  struct sigaction action {};
  action.sa_sigaction = own_handler;
  action.sa_flags = SA_SIGINFO;
  sigaction(SIGSEGV, &action, nullptr);
  unsigned char* const in = released(bytes);
  auto* const none = static_cast<volatile unsigned char*>(
      mmap(nullptr, page, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
  if (sigsetjmp(back, 1) == 0) none[123] = 1;
  rank::expect(fault_seen == none + 123, "the program's handler did not see its fault");
  fault_seen = nullptr;
  rank::expect(rank::filled(in, bytes, 7) && fault_seen == nullptr, "it saw one of ours");
}

void read_as(const std::string& how) {
  if (how == "touch") touch();
  if (how == "store") store();
  if (how == "shared") shared();
  if (how == "repost") repost();
  if (how == "forward") forward();
  if (how == "short") shorter();
  if (how == "fork") with_fork();
  if (how == "status") with_status();
  if (how == "lost" || how == "handled") lost(how == "handled");
  if (how == "truncated") wild(released(page));
  if (how == "wild") wild(released(bytes));
  if (how == "own-faults") own_faults();
}

void send_as(const std::string& how) {
  if (how == "lost" || how == "handled") {
    while (access(file, F_OK) != 0) usleep(1000);
    return;
  }
  send_when_told(bytes, 7);
  if (how == "repost") send_when_told(bytes, 8);
  if (how != "forward") return;
  unsigned char* const in = memory(bytes);
  rank::expect_code(parc_read(parc, 1, 1, in, bytes, nullptr), PARC_OK, "read");
  rank::expect(rank::filled(in, bytes, 7), "what came back is not what was sent");
}

} // namespace

int main(int argc, char** argv) {
  if (argc != 3 && argc != 4) return 2;
  file = argv[2];
  if (argc == 4) kind = argv[3];
  parc = rank::open();
  if (rank::number == 1) {
    rank::expect_code(parc_set_release(parc, PARC_RELEASE_FULL), PARC_OK, "set_release");
    read_as(argv[1]);
  } else {
    kind = "arena";
    send_as(argv[1]);
  }
  rank::expect_code(parc_close(parc), PARC_OK, "close");
}
