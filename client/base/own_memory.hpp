// SPDX-License-Identifier: BSD-3-Clause
// Memory of libparc's own, in mappings that hold nothing else: what a page fault's handler touches must never
// share a page with the program's data, which may be guarded.
#pragma once

#include <cstddef>
#include <new>
#include <sys/mman.h>
#ifdef __SANITIZE_ADDRESS__
#include <sanitizer/lsan_interface.h>
#endif

namespace parc::client {

// Zeroed pages, touched when they are used. Pointers to the heap lie there, which a leak checker is told.
[[nodiscard]] inline void* map_own(std::size_t bytes) {
  void* const memory = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED) throw std::bad_alloc();
#ifdef __SANITIZE_ADDRESS__
  __lsan_register_root_region(memory, bytes);
#endif
  return memory;
}

inline void unmap_own(void* memory, std::size_t bytes) {
#ifdef __SANITIZE_ADDRESS__
  __lsan_unregister_root_region(memory, bytes);
#endif
  munmap(memory, bytes);
}

template <class T> struct OwnMemory { // an allocator
  using value_type = T;
  OwnMemory() = default;
  template <class U> OwnMemory(const OwnMemory<U>&) {}
  [[nodiscard]] T* allocate(std::size_t n) { return static_cast<T*>(map_own(n * sizeof(T))); }
  void deallocate(T* memory, std::size_t n) { unmap_own(memory, n * sizeof(T)); }
  bool operator==(const OwnMemory&) const = default;
};

} // namespace parc::client
