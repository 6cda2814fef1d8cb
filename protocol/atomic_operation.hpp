// SPDX-License-Identifier: BSD-3-Clause
// An atomic operation on a word of memory of this process, by the CPU.
#pragma once

#include "protocol/wire.hpp"

#include <atomic>
#include <cstddef>
#include <cstdint>

namespace parc::protocol {

// Who has read its answer has seen what was stored before it: acquire and release.
template <class Word> std::uint64_t operate_on(std::byte* at, const Atomic& atomic) {
  const std::atomic_ref<Word> word(*reinterpret_cast<Word*>(at));
  const auto operand = static_cast<Word>(atomic.operand);
  switch (atomic.what) {
  case Atomic::What::add: return word.fetch_add(operand, std::memory_order_acq_rel);
  case Atomic::What::swap: return word.exchange(operand, std::memory_order_acq_rel);
  case Atomic::What::bit_and: return word.fetch_and(operand, std::memory_order_acq_rel);
  case Atomic::What::bit_or: return word.fetch_or(operand, std::memory_order_acq_rel);
  case Atomic::What::bit_xor: return word.fetch_xor(operand, std::memory_order_acq_rel);
  case Atomic::What::compare_swap: break;
  }
  auto expected = static_cast<Word>(atomic.compare);
  (void)word.compare_exchange_strong(expected, operand, std::memory_order_acq_rel);
  return expected;
}

// At a multiple of its width; what was there before.
inline std::uint64_t operate(std::byte* at, const Atomic& atomic) {
  return atomic.width == 4 ? operate_on<std::uint32_t>(at, atomic) : operate_on<std::uint64_t>(at, atomic);
}

} // namespace parc::protocol
