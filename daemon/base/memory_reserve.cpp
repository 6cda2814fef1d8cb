// SPDX-License-Identifier: BSD-3-Clause
#include "daemon/base/memory_reserve.hpp"

#include <atomic>
#include <cstddef>
#include <new>
#include <sys/mman.h>

namespace parc::daemon {
namespace {

constexpr std::size_t reserve_bytes = 16 << 20; // address space: nobody touches it

// Relaxed: whoever takes it needs nothing that another thread has written.
std::atomic<void*> reserve = nullptr;
std::atomic<bool> spent = false;

// From `new`, which tries again then; where there is none, it throws.
void give_back() {
  void* const memory = reserve.exchange(nullptr, std::memory_order_relaxed);
  if (memory == nullptr) throw std::bad_alloc();
  spent.store(true, std::memory_order_relaxed);
  munmap(memory, reserve_bytes);
}

} // namespace

MemoryReserve::MemoryReserve() {
  (void)fill();
  std::set_new_handler(give_back);
}

MemoryReserve::~MemoryReserve() {
  std::set_new_handler(nullptr);
  if (void* const memory = reserve.exchange(nullptr)) munmap(memory, reserve_bytes);
}

bool MemoryReserve::used() {
  return spent.load(std::memory_order_relaxed);
}

bool MemoryReserve::fill() {
  void* const memory = mmap(nullptr, reserve_bytes, PROT_READ | PROT_WRITE,
                            MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (memory == MAP_FAILED) return false;
  reserve.store(memory, std::memory_order_relaxed);
  spent.store(false, std::memory_order_relaxed);
  return true;
}

} // namespace parc::daemon
