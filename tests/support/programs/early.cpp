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
#include <functional>
#include <malloc.h>
#include <pthread.h>
#include <string>
#include <sys/mman.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>
#include <vector>

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
  // Where output waits until the message has begun, the test looks for guarded pages instead.
  if (getenv("PARC_EARLY_RELEASE") != nullptr) return;
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

int guarded_pages(const unsigned char* in) {
  std::FILE* const maps = std::fopen("/proc/self/maps", "r");
  unsigned long low = 0, high = 0, guarded = 0;
  char access[5];
  const auto begin = reinterpret_cast<std::uintptr_t>(in), end = begin + bytes;
  while (std::fscanf(maps, "%lx-%lx %4s%*[^\n]", &low, &high, access) == 3)
    if (std::strcmp(access, "---s") == 0 && high > begin && low < end) guarded += (high - low) / page;
  std::fclose(maps);
  return static_cast<int>(guarded);
}

// Whatever order is declared, whether it is kept or not, all that is missing is guarded.
void in_declared_order(int order, bool up) {
  rank::expect_code(parc_set_order(parc, order), PARC_OK, "set_order");
  const unsigned char* const in = released(bytes);
  rank::expect(guarded_pages(in) > 1, "%d pages are guarded", guarded_pages(in));
  for (std::size_t i = 0; i < bytes; ++i) {
    const std::size_t at = up ? i : bytes - 1 - i;
    rank::expect(rank::filled(in + at, 1, 7, at), "wrong bytes at %zu", at);
  }
  rank::expect(faults() > 0, "nothing was guarded");
}

// A second read into the buffer of the first: in the end the second's bytes are there.
void repost() {
  unsigned char* const in = released(bytes);
  rank::expect_code(parc_read(parc, 0, 0, in, bytes, nullptr), PARC_OK, "second read");
  rank::expect(rank::filled(in, bytes, 8), "not the second message");
}

// Writes to one rank keep their order, although the first waits behind the gate and the second is asked for
// when that has just opened: by a message to oneself, which is never gated.
void in_order() {
  unsigned char* const block = memory(3 * page);
  std::memset(block, 1, page);
  std::memset(block + page, 2, page);
  for (int round = 0; round < 100; ++round) {
    rank::expect_code(parc_read(parc, 1, 9, block + 2 * page, page, nullptr), PARC_OK, "read");
    parc_op writes[] = {parc_initwrite(parc, 0, 5, block, page), parc_initwrite(parc, 1, 9, block, page),
                        parc_initwrite(parc, 0, 5, block + page, page)};
    rank::expect_code(parc_waitall(parc, 3, writes, nullptr), PARC_OK, "waitall");
  }
}

void read_in_order() {
  unsigned char* const in = memory(page);
  for (int i = 0; i < 200; ++i) {
    rank::expect_code(parc_read(parc, 1, 5, in, page, nullptr), PARC_OK, "read");
    rank::expect(in[0] == i % 2 + 1, "message %d overtook another", i);
  }
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

// A handler may change what the compiler thinks it knows.
void touch_one(const volatile unsigned char* byte) {
  (void)*byte;
  asm volatile("" ::: "memory");
}

void lost(bool handled) {
  parc_lost seen{};
  if (handled) rank::expect_code(parc_on_lost(parc, handle_loss, &seen), PARC_OK, "on_lost");
  const unsigned char* const in = released(bytes);
  touch_one(in + 17 * page);
  rank::expect(handled, "the program went on without its message");
  rank::expect(seen.buffer == in && seen.length == bytes && seen.error == PARC_EPEER && seen.source == 0,
               "the loss was described otherwise");
  std::printf("went on\n");
}

// The program deals with it, and goes on reading.
void cut_short() {
  parc_lost seen{};
  rank::expect_code(parc_on_lost(parc, handle_loss, &seen), PARC_OK, "on_lost");
  const unsigned char* const in = released(page);
  touch_one(in);
  rank::expect(seen.error == PARC_ETRUNCATE && seen.length == page, "the loss was described otherwise");
  for (int i = 0; i < 10; ++i) {
    unsigned char more = 0;
    rank::expect_code(parc_write(parc, 1, 1, &more, 1), PARC_OK, "write");
    rank::expect_code(parc_read(parc, 1, 1, &more, 1, nullptr), PARC_OK, "read");
  }
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

// ---- With libparc-early.so in front of the C library (parc run --early-release).

// What is written to a pipe from a buffer that has yet to arrive is what arrives.
void written(const std::function<ssize_t(int, const unsigned char*)>& write_some) {
  int ends[2];
  rank::expect(pipe(ends) == 0, "no pipe");
  const unsigned char* const in = released(bytes);
  const ssize_t sent = write_some(ends[1], in + 10 * page);
  rank::expect(sent == static_cast<ssize_t>(2 * page), "%zd bytes were written", sent);
  std::vector<unsigned char> out(2 * page);
  rank::expect(read(ends[0], out.data(), out.size()) == sent, "the pipe is empty");
  rank::expect(rank::filled(out.data(), out.size(), 7, 10 * page), "wrong bytes in the pipe");
}

// What lies beside a buffer on its first page is guarded with it.
void neighbour_written() {
  int ends[2];
  rank::expect(pipe(ends) == 0, "no pipe");
  unsigned char* const block = memory(bytes + 2 * page);
  std::memset(block, 42, 1000);
  const unsigned char* const in = released(bytes, block + 1000);
  rank::expect(write(ends[1], block + 900, 50) == 50, "a neighbour was not written");
  rank::expect(rank::filled(in, bytes, 7), "wrong bytes");
}

void system_calls(const std::string& how) {
  if (how == "call-neighbour") return neighbour_written();
  if (how == "call-write")
    return written([](int to, const unsigned char* from) { return write(to, from, 2 * page); });
  if (how == "call-writev")
    return written([](int to, const unsigned char* from) {
      const iovec pieces[] = {{const_cast<unsigned char*>(from), page},
                              {const_cast<unsigned char*>(from) + page, page}};
      return writev(to, pieces, 2);
    });
  if (how == "call-fwrite")
    return written([](int to, const unsigned char* from) {
      FILE* const stream = fdopen(dup(to), "w");
      const size_t count = std::fwrite(from, 1, 2 * page, stream);
      std::fclose(stream);
      return static_cast<ssize_t>(count);
    });
  // What is read from a pipe into a buffer comes after what the message brings there.
  int ends[2];
  rank::expect(pipe(ends) == 0 && write(ends[1], "0123456789", 10) == 10, "no pipe");
  unsigned char* const in = released(bytes);
  if (how == "call-read") rank::expect(read(ends[0], in + 20 * page, 10) == 10, "read failed");
  if (how == "call-fread") {
    FILE* const stream = fdopen(ends[0], "r");
    rank::expect(std::fread(in + 20 * page, 1, 10, stream) == 10, "fread failed");
  }
  rank::expect_code(parc_settle(parc, nullptr, 0), PARC_OK, "settle");
  rank::expect(std::memcmp(in + 20 * page, "0123456789", 10) == 0, "the message overwrote what was read");
  rank::expect(rank::filled(in, 20 * page, 7), "wrong bytes");
}

// SIGSEGV cannot be taken away.
void blocked() {
  unsigned char* const in = released(bytes);
  sigset_t all;
  sigfillset(&all);
  sigprocmask(SIG_SETMASK, &all, nullptr);
  rank::expect(rank::filled(in, bytes, 7), "wrong bytes");
}

void handler_after_release() {
  unsigned char* const in = released(bytes);
  std::signal(SIGSEGV, SIG_IGN);
  struct sigaction action {
  }, before{};
  action.sa_sigaction = own_handler;
  action.sa_flags = SA_SIGINFO;
  sigaction(SIGSEGV, &action, &before);
  rank::expect(before.sa_handler == SIG_IGN, "the program's last action is forgotten");
  rank::expect(rank::filled(in, bytes, 7), "wrong bytes");
  auto* const none = static_cast<volatile unsigned char*>(
      mmap(nullptr, page, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
  if (sigsetjmp(back, 1) == 0) none[123] = 1;
  rank::expect(fault_seen == none + 123, "the program's handler did not see its fault");
  // As System V's signal sets a handler, it is one for one fault.
  sysv_signal(SIGSEGV, [](int) { siglongjmp(back, 1); });
  if (sigsetjmp(back, 1) == 0) none[123] = 1;
  sigaction(SIGSEGV, nullptr, &before);
  rank::expect(before.sa_handler == SIG_DFL, "the program's handler stays");
}

// A file is another way out of the process: what is written there comes after what the program was released
// from has begun.
void says_by_file() {
  (void)released(bytes);
  const std::string path = std::string(file) + ".said";
  FILE* const said = std::fopen(path.c_str(), "w");
  std::fputs("said", said);
  std::fclose(said);
}

// A new program is one, too: it finds what rank 0 waits for.
void starts_program() {
  unsigned char* const in = released(bytes);
  const std::string question = std::string("test -e ") + file;
  rank::expect(std::system(question.c_str()) == 0, "a program began before the message");
  rank::expect(rank::filled(in, bytes, 7), "wrong bytes");
}

void* nothing(void*) {
  return nullptr;
}

// A thread begins when what was released has begun.
void with_thread() {
  unsigned char* const in = released(bytes);
  pthread_t thread;
  rank::expect(pthread_create(&thread, nullptr, nothing, nullptr) == 0, "no thread");
  pthread_join(thread, nullptr);
  rank::expect(access(file, F_OK) == 0, "a thread began before the message");
  rank::expect(rank::filled(in, bytes, 7), "wrong bytes");
}

void read_as(const std::string& how) {
  if (how.starts_with("call-")) system_calls(how);
  if (how == "blocked") blocked();
  if (how == "order") in_order();
  if (how == "handler-after") handler_after_release();
  if (how == "by-file") says_by_file();
  if (how == "thread") with_thread();
  if (how == "program") starts_program();
  if (how == "touch") touch();
  if (how == "up" || how == "not-up") in_declared_order(PARC_ORDER_UP, how == "up");
  if (how == "down" || how == "not-down") in_declared_order(PARC_ORDER_DOWN, how == "not-down");
  if (how == "store") store();
  if (how == "shared") shared();
  if (how == "repost") repost();
  if (how == "forward") forward();
  if (how == "short") shorter();
  if (how == "fork") with_fork();
  if (how == "status") with_status();
  if (how == "lost" || how == "handled") lost(how == "handled");
  if (how == "truncated") wild(released(page));
  if (how == "truncated-handled") cut_short();
  if (how == "wild") wild(released(bytes));
  if (how == "own-faults") own_faults();
}

void send_as(const std::string& how) {
  if (how == "order") return read_in_order();
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
