// SPDX-License-Identifier: BSD-3-Clause
// What the program does to pages: their access, their bytes, their place; and to blocks of malloc, which
// gives them to others that know nothing of what is still to come into them. All that is missing there is
// waited for first. Then adopted memory, which is shared, becomes private where that makes a difference.
#include "client/preload/hooks.hpp"

#include <atomic>
#include <cerrno>
#include <cstdarg>
#include <cstdlib>
#include <cstring>
#include <malloc.h>
#include <sys/mman.h>
#include <sys/uio.h>
#include <unistd.h>

using parc::client::PageChange;

namespace {

// False: the pages must be zeroed by hand.
bool announce(const void* memory, std::size_t bytes, PageChange change) {
  const auto* const ours = parc::preload::hooks();
  if (ours == nullptr || ours->in_library()) return true;
  return ours->before_change(memory, bytes, change);
}

PageChange change_to(int access) {
  if ((access & PROT_EXEC) != 0) return PageChange::move; // which the system gives no segment
  const int all = PROT_READ | PROT_WRITE;
  return (access & all) == all ? PageChange::unprotect : PageChange::protect;
}

// Newer headers have more of them than older ones.
constexpr int advice_free = 8, advice_remove = 9, advice_do_not_fork = 10, advice_fork = 11,
              advice_wipe_on_fork = 18, advice_keep_on_fork = 19, advice_do_not_need_locked = 24;

PageChange change_by(int advice) {
  switch (advice) {
  case MADV_DONTNEED:
  case advice_free:
  case advice_remove:
  case advice_do_not_need_locked: return PageChange::discard;
  case advice_do_not_fork:
  case advice_wipe_on_fork: return PageChange::pin;
  case advice_fork:
  case advice_keep_on_fork: return PageChange::unpin;
  default: return PageChange::look;
  }
}

constexpr std::size_t all_memory = SIZE_MAX / 2;

// ---- Blocks. Called very often, and by the loader before this library's objects are made; dlsym itself may
// call them, to free an old error's text: then nobody does.
__attribute__((tls_model("initial-exec"))) thread_local bool finding = false;

template <class Function> Function* found(std::atomic<Function*>& known, const char* name) {
  Function* function = known.load(std::memory_order_acquire);
  if (function != nullptr) return function;
  finding = true;
  function = parc::preload::next<Function>(name);
  finding = false;
  known.store(function, std::memory_order_release);
  return function;
}

void settle_block(void* block) {
  if (block == nullptr) return;
  const auto* const ours = parc::preload::hooks();
  if (ours == nullptr || ours->guarded->load(std::memory_order_relaxed) == 0) return;
  if (parc::preload::guarding() != nullptr) ours->settle(block, malloc_usable_size(block));
}

} // namespace

extern "C" {

#pragma GCC visibility push(default)

void free(void* block) noexcept {
  using Function = void(void*) noexcept;
  static std::atomic<Function*> next;
  if (finding) return;
  settle_block(block);
  found(next, "free")(block);
}

void* realloc(void* block, size_t bytes) noexcept {
  using Function = void*(void*, size_t) noexcept;
  static std::atomic<Function*> next;
  settle_block(block);
  return found(next, "realloc")(block, bytes);
}

void* reallocarray(void* block, size_t count, size_t bytes) noexcept {
  using Function = void*(void*, size_t, size_t) noexcept;
  static std::atomic<Function*> next;
  settle_block(block);
  return found(next, "reallocarray")(block, count, bytes);
}

// ---- Access

int mprotect(void* memory, size_t bytes, int access) noexcept {
  PARC_REAL(mprotect);
  (void)announce(memory, bytes, change_to(access));
  return real(memory, bytes, access);
}

int pkey_mprotect(void* memory, size_t bytes, int access, int key) noexcept {
  PARC_REAL(pkey_mprotect);
  (void)announce(memory, bytes, change_to(access));
  if (key > 0) (void)announce(memory, bytes, PageChange::pin);
  return real(memory, bytes, access, key);
}

// ---- Bytes

int madvise(void* memory, size_t bytes, int advice) noexcept {
  PARC_REAL(madvise);
  // Of shared memory nothing is wiped, and adopted pages may stay it while a message comes in beside them.
  if (advice == advice_wipe_on_fork) (void)announce(memory, bytes, PageChange::move);
  if (announce(memory, bytes, change_by(advice))) return real(memory, bytes, advice);
  if (advice == advice_remove) { // of private memory, which the program has, the system removes nothing
    errno = EINVAL;
    return -1;
  }
  std::memset(memory, 0, bytes);
  return 0;
}

int posix_madvise(void* memory, size_t bytes, int advice) noexcept {
  PARC_REAL(posix_madvise);
  (void)announce(memory, bytes, PageChange::look); // it discards nothing
  return real(memory, bytes, advice);
}

ssize_t process_madvise(int process, const iovec* pieces, size_t count, int advice, unsigned flags) noexcept {
  PARC_REAL(process_madvise);
  parc::preload::settle(pieces, count * sizeof(iovec));
  // Of this process or of another: where these are private makes no difference to the program.
  for (size_t i = 0; i < count; ++i) (void)announce(pieces[i].iov_base, pieces[i].iov_len, change_by(advice));
  return real(process, pieces, count, advice, flags);
}

// ---- Places

void* mremap(void* memory, size_t bytes, size_t wanted, int flags, ...) noexcept {
  PARC_REAL(mremap);
  PARC_LAST_ARGUMENT(void*, flags);
  (void)announce(memory, bytes, PageChange::move);
  if ((flags & MREMAP_FIXED) != 0) (void)announce(last, wanted, PageChange::unmap);
  return real(memory, bytes, wanted, flags, last);
}

int munmap(void* memory, size_t bytes) noexcept {
  PARC_REAL(munmap);
  (void)announce(memory, bytes, PageChange::unmap);
  return real(memory, bytes);
}

void* mmap(void* memory, size_t bytes, int access, int flags, int file, off_t offset) noexcept {
  PARC_REAL(mmap);
  if ((flags & MAP_FIXED) != 0) (void)announce(memory, bytes, PageChange::unmap);
  return real(memory, bytes, access, flags, file, offset);
}

void* mmap64(void* memory, size_t bytes, int access, int flags, int file, off64_t offset) noexcept {
  PARC_REAL(mmap64);
  if ((flags & MAP_FIXED) != 0) (void)announce(memory, bytes, PageChange::unmap);
  return real(memory, bytes, access, flags, file, offset);
}

int remap_file_pages(void* memory, size_t bytes, int access, size_t page, int flags) noexcept {
  PARC_REAL(remap_file_pages);
  (void)announce(memory, bytes, PageChange::look);
  return real(memory, bytes, access, page, flags);
}

// ---- Pages that stay

int mlock(const void* memory, size_t bytes) noexcept {
  PARC_REAL(mlock);
  (void)announce(memory, bytes, PageChange::pin);
  return real(memory, bytes);
}

int mlock2(const void* memory, size_t bytes, unsigned flags) noexcept {
  PARC_REAL(mlock2);
  (void)announce(memory, bytes, PageChange::pin);
  return real(memory, bytes, flags);
}

int munlock(const void* memory, size_t bytes) noexcept {
  PARC_REAL(munlock);
  (void)announce(memory, bytes, PageChange::unpin);
  return real(memory, bytes);
}

int mlockall(int flags) noexcept {
  PARC_REAL(mlockall);
  (void)announce(nullptr, all_memory, PageChange::pin);
  return real(flags);
}

int munlockall() noexcept {
  PARC_REAL(munlockall);
  (void)announce(nullptr, all_memory, PageChange::unpin);
  return real();
}

#pragma GCC visibility pop
}
