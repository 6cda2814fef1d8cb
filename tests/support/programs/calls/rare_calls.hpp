// SPDX-License-Identifier: BSD-3-Clause
// What programs do to memory more seldom: other calls for the same, and a range that becomes a signal stack
// or a System V segment.
#pragma once

#include "tests/support/programs/calls/page_calls.hpp"

#include <malloc.h>
#include <sys/random.h>
#include <sys/shm.h>

namespace calls {

inline void fill_by_system(State& at, Range range) {
  range = range.no_more_than(200);
  at.whole(getrandom(range.memory(), range.bytes, 0), range.bytes);
  store(at, range);
}

inline void receive_message(State& at, Range range) {
  range = range.no_more_than(32'000);
  at.draw_bytes(range);
  at.whole(send(at.sockets[0], at.scratch, range.bytes, 0), range.bytes);
  const std::size_t middle = at.random.below(range.bytes + 1);
  iovec pieces[] = {{range.memory(), middle}, {range.memory() + middle, range.bytes - middle}};
  mmsghdr message{};
  message.msg_hdr.msg_iov = pieces;
  message.msg_hdr.msg_iovlen = 2;
  if (at.random.chance(50)) {
    at.result(recvmmsg(at.sockets[1], &message, 1, MSG_WAITALL, nullptr));
    at.whole(message.msg_len, range.bytes);
  } else {
    at.whole(recvmsg(at.sockets[1], &message.msg_hdr, MSG_WAITALL), range.bytes);
  }
}

inline void send_messages(State& at, Range range) {
  range = range.no_more_than(32'000);
  iovec piece{range.memory(), range.bytes};
  mmsghdr message{};
  message.msg_hdr.msg_iov = &piece;
  message.msg_hdr.msg_iovlen = 1;
  at.result(sendmmsg(at.sockets[0], &message, 1, 0));
  at.whole(message.msg_len, range.bytes);
  at.read_back(range, at.sockets[1], "as one of a socket's messages");
}

inline void copy_by_pieces(State& at, Range range) {
  range = range.no_more_than(of_pipe);
  at.draw_bytes(range);
  at.whole(write(at.pipe[1], at.scratch, range.bytes), range.bytes);
  const std::size_t middle = at.random.below(range.bytes + 1);
  const iovec pieces[] = {{range.memory(), middle}, {range.memory() + middle, range.bytes - middle}};
  at.whole(readv(at.pipe[0], pieces, 2), range.bytes);
}

inline void advise_by_others(State& at, Range range) {
  const Range pages = range.pages();
  if (pages.bytes == 0) return;
  if (at.random.chance(50)) {
    at.result(posix_madvise(pages.memory(), pages.bytes, POSIX_MADV_DONTNEED));
  } else {
    const int process = static_cast<int>(syscall(SYS_pidfd_open, getpid(), 0));
    const iovec piece{pages.memory(), pages.bytes};
    at.result(process_madvise(process, &piece, 1, advice_cold, 0));
    close(process);
  }
  at.check(range, "after advice of another kind");
}

// (Other threads' pages would be unlocked, too.)
inline void lock_everything(State& at, Range range) {
  if (at.threads) return;
  at.result(mlockall(MCL_CURRENT));
  at.check(range, "locked with all");
  at.result(munlockall());
  for (Region& each : at.regions) each.locked = false;
}

inline void lock_when_touched(State& at, Range range) {
  at.result(mlock2(range.memory(), range.bytes, MLOCK_ONFAULT));
  at.check(range, "locked when touched");
  at.result(munlock(range.memory(), range.bytes));
}

inline void protect_by_key(State& at, Range range) {
  const Range pages = range.pages();
  if (pages.bytes == 0) return;
  at.result(pkey_mprotect(pages.memory(), pages.bytes, PROT_READ, -1));
  expect_access(at, pages, true, false);
  at.result(pkey_mprotect(pages.memory(), pages.bytes, PROT_READ | PROT_WRITE, -1));
  at.check(range, "writable again");
}

// Its name goes at once, so that nobody's end leaves it behind.
inline void attach_segment(State& at, Range range) {
  const Range pages = range.pages();
  if (pages.bytes == 0 || !range.region->can_be_replaced() || range.region->shared()) return;
  const int id = shmget(IPC_PRIVATE, pages.bytes, IPC_CREAT | 0600);
  void* const first = shmat(id, nullptr, 0);
  shmctl(id, IPC_RMID, nullptr);
  if (id < 0 || first == reinterpret_cast<void*>(-1)) wrong("no segment: %s", std::strerror(errno));
  at.draw_bytes(pages);
  std::memcpy(first, at.scratch, pages.bytes);
  if (shmat(id, pages.memory(), SHM_REMAP) != pages.memory()) wrong("not attached: %s", std::strerror(errno));
  shmdt(first);
  at.check(pages, "a segment in its place");
  map_again(at, pages);
}

inline void trim(State& at, Range range) {
  (void)malloc_trim(at.random.below(2) * 100'000);
  at.check(range, "after malloc_trim");
}

// Faults of what another message is still missing in come to it, too.
inline void become_signal_stack(State& at, Range range) {
  if (range.bytes < (64 << 10) || range.region->kind == Kind::stack) return;
  const stack_t stack{range.memory(), 0, range.bytes}, none{nullptr, SS_DISABLE, 0};
  at.whole(sigaltstack(&stack, nullptr), 0);
  const Range other = at.last.empty() ? range : at.last[at.random.below(at.last.size())];
  if (!other.meets(range)) {
    handled = other.memory();
    handled_bytes = other.bytes;
    at.result(raise(SIGUSR2));
    expect_sum(at, other, handlers_sum, "in a handler on a stack of its own");
    at.check(other, "with another signal stack");
  }
  at.whole(sigaltstack(&none, nullptr), 0);
  store(at, range);
}

inline void become_thread_stack(State& at, Range range) {
  const Range pages = range.pages();
  if (!at.threads || pages.bytes < (64 << 10) || range.region->kind == Kind::stack) return;
  Looked looked{at.scratch, 1000, 0};
  pthread_attr_t attributes;
  pthread_attr_init(&attributes);
  at.whole(pthread_attr_setstack(&attributes, pages.memory(), pages.bytes), 0);
  pthread_t thread;
  if (pthread_create(&thread, &attributes, look, &looked) != 0) wrong("no thread");
  pthread_join(thread, nullptr);
  pthread_attr_destroy(&attributes);
  store(at, pages);
}

inline constexpr Call rare_calls[] = {
    {"getrandom", 1, fill_by_system},
    {"recvmsg or recvmmsg", 2, receive_message},
    {"sendmmsg", 1, send_messages},
    {"readv", 2, copy_by_pieces},
    {"posix_madvise or process_madvise", 2, advise_by_others},
    {"mlockall", 1, lock_everything},
    {"mlock2", 2, lock_when_touched},
    {"pkey_mprotect", 1, protect_by_key},
    {"shmat", 2, attach_segment},
    {"malloc_trim", 1, trim},
    {"sigaltstack", 2, become_signal_stack},
    {"pthread_attr_setstack", 2, become_thread_stack},
};

} // namespace calls
