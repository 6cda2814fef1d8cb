// SPDX-License-Identifier: BSD-3-Clause
// What a program does to pages that it has just been released onto: their access, their bytes, their place,
// the block that they are. Between ranks 0 (sends) and 1 (reads), under `parc run --early-release`: rank 0
// sends once rank 1's wait has returned, or, at level `envelope`, at once. What is seen afterwards is what a
// program without early release sees.
// Usage: page_changes FILE, which is made and lets rank 1 speak to rank 0 behind everybody's back.
#include "tests/support/programs/rank.hpp"

#include <atomic>
#include <csetjmp>
#include <csignal>
#include <cstdio>
#include <cstring>
#include <fcntl.h>
#include <malloc.h>
#include <string>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

namespace {

constexpr std::size_t page = 4096, bytes = 4 << 20;
parc_context* parc = nullptr;
std::atomic<std::uint64_t>* told = nullptr; // how many waits have returned
bool at_once = false;                       // they do before their messages are sent
std::uint64_t messages = 0;                 // both ranks count alike
alignas(page) unsigned char in_bss[bytes];

void open_file(const char* path) {
  const int file = open(path, O_RDWR | O_CREAT, 0600);
  rank::expect(file >= 0 && ftruncate(file, page) == 0, "cannot make %s", path);
  void* const there = mmap(nullptr, page, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
  rank::expect(there != MAP_FAILED, "cannot map %s", path);
  told = static_cast<std::atomic<std::uint64_t>*>(there);
  close(file);
}

void send(std::size_t length = bytes) {
  ++messages;
  static auto* const out = static_cast<unsigned char*>(parc_alloc(parc, bytes));
  rank::fill(out, length, messages);
  while (at_once && told->load() < messages) usleep(1000);
  rank::expect_code(parc_write(parc, 1, 0, out, length), PARC_OK, "write");
}

bool arrived(const unsigned char* in) {
  return rank::filled(in, bytes, messages);
}

enum class Wait { released, perhaps }; // perhaps: the message must not wait for that
void read_into(unsigned char* in, Wait how = Wait::released) {
  ++messages;
  std::memset(in, 1, bytes);
  if (how == Wait::perhaps) told->store(messages);
  const parc_envelope from = parc_envelope_of(0, 0, 0);
  const iovec whole{in, bytes};
  const parc_op read =
      parc_initreadv(parc, &from, &whole, 1, at_once ? PARC_EARLY : 0U); // whether it pays or not
  rank::expect_code(parc_wait(parc, read, nullptr), PARC_OK, "wait");
  told->store(messages);
}

sigjmp_buf back;
void jump_back(int) {
  siglongjmp(back, 1);
}

bool can_be_stored_to(volatile unsigned char* byte) {
  std::signal(SIGSEGV, jump_back);
  const bool can = sigsetjmp(back, 1) == 0;
  if (can) *byte = *byte;
  std::signal(SIGSEGV, SIG_DFL);
  return can;
}

// It is not made writable again behind the program's back, neither by this message nor by the next.
void access_is_changed(unsigned char* in, const char* kind) {
  read_into(in);
  rank::expect(mprotect(in, bytes, PROT_READ | PROT_WRITE) == 0 && arrived(in),
               "%s: old bytes after mprotect", kind);
  read_into(in);
  rank::expect(mprotect(in + page, bytes / 2, PROT_READ) == 0 && arrived(in),
               "%s: old bytes after they became read-only", kind);
  rank::expect_code(parc_settle(parc, nullptr, 0), PARC_OK, "settle");
  rank::expect(!can_be_stored_to(in + page) && can_be_stored_to(in) && can_be_stored_to(in + bytes - 1),
               "%s: the access is not what the program made it", kind);
  rank::expect(mprotect(in + page, bytes / 2, PROT_READ | PROT_WRITE) == 0 && can_be_stored_to(in + page),
               "%s: it is read-only for ever", kind);
}

void read_only_memory_is_sent(unsigned char* in) {
  rank::expect(mprotect(in, bytes, PROT_READ) == 0, "mprotect");
  const parc_op write = parc_initwrite(parc, 0, 1, in, bytes);
  rank::expect_code(parc_wait(parc, write, nullptr), PARC_OK, "wait");
  rank::expect_code(parc_write(parc, 0, 2, nullptr, 0), PARC_OK, "write");
  rank::expect_code(parc_read(parc, 0, 2, nullptr, 0, nullptr), PARC_OK, "read");
  rank::expect(!can_be_stored_to(in), "what was sent can be stored to");
  rank::expect(mprotect(in, bytes, PROT_READ | PROT_WRITE) == 0, "mprotect");
}

void take_it() {
  unsigned char* const in = static_cast<unsigned char*>(parc_alloc(parc, bytes));
  rank::expect_code(parc_read(parc, 1, 2, nullptr, 0, nullptr), PARC_OK, "read");
  rank::expect_code(parc_read(parc, 1, 1, in, bytes, nullptr), PARC_OK, "read");
  rank::expect_code(parc_settle(parc, nullptr, 0), PARC_OK, "settle");
  parc_free(parc, in);
  rank::expect_code(parc_write(parc, 1, 2, nullptr, 0), PARC_OK, "write");
}

void bytes_are_discarded(unsigned char* in, const char* kind) {
  read_into(in);
  unsigned char* const from = in + 16 * page;
  rank::expect(madvise(from, 32 * page, MADV_DONTNEED) == 0, "%s: madvise", kind);
  for (std::size_t i = 0; i < 32 * page; ++i) rank::expect(from[i] == 0, "%s: byte %zu is not zero", kind, i);
  rank::expect(rank::filled(in, 16 * page, messages) &&
                   rank::filled(in + 48 * page, bytes - 48 * page, messages, 48 * page),
               "%s: other bytes went, too", kind);
  read_into(in);
  rank::expect(madvise(in, bytes, MADV_WILLNEED) == 0 && arrived(in), "%s: read again: wrong bytes", kind);
}

// While a message comes into others that were adopted with them.
void bytes_are_kept_from_children(unsigned char* in, const char* kind) {
  ++messages;
  const parc_envelope from = parc_envelope_of(0, 0, 0);
  const iovec half{in + bytes / 2, bytes / 2};
  const parc_op read = parc_initreadv(parc, &from, &half, 1, at_once ? PARC_EARLY : 0U);
  std::memset(in, 1, bytes / 2);
  rank::expect(madvise(in + page, bytes / 4, MADV_WIPEONFORK) == 0, "%s: cannot be kept from children", kind);
  rank::expect(in[page] == 1 && in[bytes / 4] == 1, "%s: bytes went, too", kind);
  told->store(messages);
  rank::expect_code(parc_wait(parc, read, nullptr), PARC_OK, "wait");
  rank::expect(rank::filled(in + bytes / 2, bytes / 2, messages), "%s: wrong bytes", kind);
  rank::expect(madvise(in + page, bytes / 4, MADV_KEEPONFORK) == 0, "%s: kept from children for ever", kind);
}

void pages_are_locked(unsigned char* in, const char* kind) {
  read_into(in);
  rank::expect(mlock(in + page, 4 * page) == 0 && arrived(in), "%s: mlock failed", kind);
  read_into(in, Wait::perhaps); // memory that is locked is not adopted
  rank::expect(arrived(in) && munlock(in + page, 4 * page) == 0, "%s: munlock failed", kind);
}

unsigned char* block() {
  auto* const made = static_cast<unsigned char*>(std::aligned_alloc(page, bytes + page));
  rank::expect(made != nullptr, "no memory");
  return made;
}

unsigned char* plain_block() {
  auto* const made = static_cast<unsigned char*>(std::malloc(bytes));
  rank::expect(made != nullptr, "no memory");
  return made;
}

// The next who gets the block gives it to the system by a way that nobody stands before.
void block_is_freed() {
  int ends[2];
  rank::expect(pipe(ends) == 0, "no pipe");
  unsigned char* in = plain_block();
  read_into(in);
  std::free(in);
  in = plain_block();
  rank::expect(write(ends[1], "0123456789", 10) == 10, "cannot fill a pipe");
  rank::expect(syscall(SYS_read, ends[0], in + bytes / 2, 10) == 10, "a block that was freed is guarded");
  rank::expect_code(parc_settle(parc, nullptr, 0), PARC_OK, "settle");
  rank::expect(std::memcmp(in + bytes / 2, "0123456789", 10) == 0, "a message came into freed memory");
  close(ends[0]);
  close(ends[1]);
  std::free(in);
}

void block_is_resized() {
  unsigned char* in = plain_block();
  read_into(in);
  in = static_cast<unsigned char*>(std::realloc(in, 2 * bytes));
  rank::expect(in != nullptr && arrived(in), "realloc lost bytes");
  std::memset(in + bytes, 5, bytes);
  std::free(in);
}

void pages_are_moved() {
  unsigned char* const in = plain_block();
  const std::uintptr_t from = (reinterpret_cast<std::uintptr_t>(in) + page) & ~(page - 1);
  auto* const middle = reinterpret_cast<unsigned char*>(from);
  read_into(in);
  const std::size_t skipped = static_cast<std::size_t>(middle - in);
  auto* const moved = static_cast<unsigned char*>(mremap(middle, bytes / 2, bytes, MREMAP_MAYMOVE));
  rank::expect(moved != MAP_FAILED, "mremap failed");
  rank::expect(rank::filled(moved, bytes / 2, messages, skipped), "mremap lost bytes");
  for (std::size_t i = bytes / 2; i < bytes; ++i) rank::expect(moved[i] == 0, "it has not grown by zeros");
  // (A block with a hole is not given back.)
}

} // namespace

int main(int argc, char** argv) {
  if (argc != 2) return 2;
  mallopt(M_MMAP_THRESHOLD, 128 << 10);
  parc = rank::open();
  open_file(argv[1]);
  const char* const level = getenv("PARC_EARLY_RELEASE");
  at_once = level != nullptr && std::string(level) == "full";
  const bool sends = rank::number == 0;
  auto* const of_arena = static_cast<unsigned char*>(parc_alloc(parc, bytes));
  mallopt(M_MMAP_THRESHOLD, 1 << 30);
  unsigned char* const of_heap = block();
  mallopt(M_MMAP_THRESHOLD, 128 << 10);
  auto* const in_chunk = reinterpret_cast<unsigned char*>(
      (reinterpret_cast<std::uintptr_t>(std::malloc(bytes + 2 * page)) + page) & ~(page - 1));
  const struct {
    unsigned char* in;
    const char* name;
  } kinds[] = {{of_arena, "arena"}, {of_heap, "heap"}, {in_chunk, "chunk"}, {in_bss, "bss"}};
  for (const auto& kind : kinds) {
    for (int i = 0; i < 2; ++i) sends ? send() : void();
    if (!sends) access_is_changed(kind.in, kind.name);
    for (int i = 0; i < 2; ++i) sends ? send() : void();
    if (!sends) pages_are_locked(kind.in, kind.name);
    if (kind.in == of_arena) continue; // shared memory, of which the system drops no bytes
    for (int i = 0; i < 2; ++i) sends ? send() : void();
    if (!sends) bytes_are_discarded(kind.in, kind.name);
    sends ? send() : read_into(kind.in);
    sends ? send(bytes / 2) : bytes_are_kept_from_children(kind.in, kind.name);
  }
  sends ? take_it() : read_only_memory_is_sent(of_arena);
  for (const auto change : {block_is_freed, block_is_resized, pages_are_moved}) sends ? send() : change();
  parc_release_counts counts;
  rank::expect_code(parc_get_release_counts(parc, &counts), PARC_OK, "counts");
  if (!sends) std::printf("%llu waits released early\n", static_cast<unsigned long long>(counts.released));
  rank::expect_code(parc_close(parc), PARC_OK, "close");
}
