// SPDX-License-Identifier: BSD-3-Clause
// Memory of libparc's own, in mappings that hold nothing else: what a page fault's handler touches must never
// share a page with the program's data, which may be guarded.
#pragma once

#include <cstddef>
#include <new>
#include <sys/mman.h>

namespace parc::client {

// Zeroed pages, touched when they are used.
[[nodiscard]] inline void* map_own(std::size_t bytes) {
  void* const memory = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED) throw std::bad_alloc();
  return memory;
}

template <class T> struct OwnMemory { // an allocator
  using value_type = T;
  OwnMemory() = default;
  template <class U> OwnMemory(const OwnMemory<U>&) {}
  [[nodiscard]] T* allocate(std::size_t n) { return static_cast<T*>(map_own(n * sizeof(T))); }
  void deallocate(T* memory, std::size_t n) { munmap(memory, n * sizeof(T)); }
  bool operator==(const OwnMemory&) const = default;
};

} // namespace parc::client
