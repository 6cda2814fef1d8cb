// SPDX-License-Identifier: BSD-3-Clause
// Pages from one place to another, as numbers; and other memory in the place of pages. That is asked of the
// system itself: to the program the memory stays what it was, and a library that stands before the C
// library's functions, as Open MPI does for what it has registered, would take it for freed.
#pragma once

#include <cstddef>
#include <cstdint>
#include <sys/mman.h>
#include <sys/shm.h>
#include <sys/syscall.h>
#include <unistd.h>

namespace parc::client {

inline void* pointer(std::uintptr_t address) {
  return reinterpret_cast<void*>(address);
}

// Pages that are all zero need no memory at the other place, which is zeros to begin with. Word by word, and
// not through the C library: a sanitizer would object to what lies between the program's objects.
__attribute__((no_sanitize("address", "undefined"))) inline void copy_pages(void* to, const void* from,
                                                                            std::size_t bytes) {
  constexpr std::size_t words = 4096 / sizeof(std::uint64_t);
  const auto* source = static_cast<const volatile std::uint64_t*>(from);
  auto* target = static_cast<volatile std::uint64_t*>(to);
  for (std::size_t page = 0; page < bytes / 4096; ++page, source += words, target += words) {
    std::uint64_t any = 0;
    for (std::size_t i = 0; i < words; ++i) any |= source[i];
    if (any == 0) continue;
    for (std::size_t i = 0; i < words; ++i) target[i] = source[i];
  }
}

// Each is false where the system has refused it.
inline bool put_segment(int id, void* at) {
  return syscall(SYS_shmat, id, at, SHM_REMAP) != -1;
}
// The mapping at `from`, or with `old_bytes` 0 another one of the same shared memory.
inline bool put_mapping(void* from, std::size_t old_bytes, void* at, std::size_t bytes) {
  return syscall(SYS_mremap, from, old_bytes, bytes, MREMAP_MAYMOVE | MREMAP_FIXED, at) != -1;
}
inline bool put_private(void* at, std::size_t bytes) {
  return syscall(SYS_mmap, at, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1L,
                 0L) != -1; // all of a register each
}

} // namespace parc::client
