// SPDX-License-Identifier: BSD-3-Clause
// Calls of the system by their number: what one does with its arguments only its number says. Those of memory
// and of locks that libraries make are known here; before any other nothing may be missing.
#include "client/preload/hooks.hpp"

#include <algorithm>
#include <cstdarg>
#include <cstdint>
#include <ctime>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

namespace {

using parc::preload::settle;
using parc::preload::settle_all;

struct Arguments {
  long of[6];
  [[nodiscard]] const void* memory(int i) const { return reinterpret_cast<const void*>(of[i]); }
  [[nodiscard]] std::size_t bytes(int i) const { return static_cast<std::size_t>(of[i]); }
};

void before_call(long number, const Arguments& given) {
  if (parc::preload::guarding() == nullptr) return;
  switch (number) {
  case SYS_gettid:
  case SYS_getpid:
  case SYS_getppid:
  case SYS_sched_yield:
  case SYS_membarrier:
  case SYS_exit: // of this thread
  case SYS_brk: return;
  case SYS_futex: // its word and another's, and how long; a number in place of those is nowhere
    settle(given.memory(0), sizeof(std::uint32_t));
    settle(given.memory(3), sizeof(timespec));
    settle(given.memory(4), sizeof(std::uint32_t));
    return;
  case SYS_mmap:
    if ((given.of[3] & MAP_FIXED) == 0) return;
    [[fallthrough]];
  case SYS_munmap: // as Open MPI calls these, which stands before them itself
  case SYS_mremap:
  case SYS_mprotect:
  case SYS_madvise: settle(given.memory(0), given.bytes(1)); return;
  default: settle_all();
  }
}

} // namespace

extern "C" {

#pragma GCC visibility push(default)

long syscall(long number, ...) noexcept {
  PARC_REAL(syscall);
  Arguments given{};
  va_list rest;
  va_start(rest, number);
  std::ranges::generate(given.of, [&] { return va_arg(rest, long); });
  va_end(rest);
  before_call(number, given);
  const auto& of = given.of;
  return real(number, of[0], of[1], of[2], of[3], of[4], of[5]);
}

#pragma GCC visibility pop
}
