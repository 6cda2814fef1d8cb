// SPDX-License-Identifier: BSD-3-Clause
// Atomic operations on words of a peer's window: its kernel makes them, with the CPU's atomics, so that they
// are atomic to programs and kernels alike that share the memory.
//
// One is a get of nothing whose request brings its operands, and whose answer is what was there before. It
// takes effect in its pair's order (puts.cpp), once: no carrier brings a request again that was taken.
#include "protocol/engine.hpp"

#include <atomic>
#include <cstring>
#include <utility>

namespace parc::protocol {
namespace {

// Who has read its answer has seen what was stored before it: acquire and release.
template <class Word> std::uint64_t operate(std::byte* at, const Atomic& atomic) {
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

} // namespace

// False: there is no such word, or not for `peer`.
bool Engine::make_atomic(const Pair& peer, const Place& place, const Atomic& atomic, std::uint64_t& before) {
  Pieces memory;
  std::uint64_t hold = 0;
  if (!find_place(peer, place, memory, hold)) return false;
  std::byte* word = nullptr;
  memory.each(0, 1, [&](std::byte* base, std::uint64_t) { word = base; });
  const bool whole = memory.count() == 1 && reinterpret_cast<std::uintptr_t>(word) % atomic.width == 0;
  if (whole)
    before = atomic.width == 4 ? operate<std::uint32_t>(word, atomic) : operate<std::uint64_t>(word, atomic);
  listener_.let_go(hold);
  return whole;
}

// Of a program of this host, whose own message it is.
void Engine::make_atomic_here(Incoming& message, const Pair& asker) {
  const Atomic atomic = atomic_of(message);
  const std::uint64_t offset = std::exchange(message.data, 0);
  if (make_atomic(asker, {message.tag, offset, atomic.width, true}, atomic, message.data))
    return check_read_done(message);
  fail_read(*message.read, Fault::place);
  drop_incoming(message);
}

Refusal Engine::answer_atomic(Link& link, Pair& asker, const Envelope& e, const Atomic& atomic) {
  std::uint64_t before = 0;
  const bool made = make_atomic(asker, {e.tag, e.data, atomic.width, true}, atomic, before);
  return_place(link, &asker);
  return made ? say_end(link, {e.message, Kind::result, 0, before})
              : say_end(link, refused(e.message, Refused::place));
}

Refusal Engine::take_result(Link& link, const Descriptor& d) {
  Incoming* const message = find_get(link, d.message);
  if (message == nullptr) return Refusal::none;
  if (message->what != Incoming::What::atomic) return Refusal::request;
  message->data = d.extra;
  if (message->matched())
    check_read_done(*message);
  else
    drop_incoming(*message);
  return Refusal::none;
}

Atomic Engine::atomic_of(const Incoming& message) {
  Atomic atomic;
  std::memcpy(&atomic, message.rode.get(), sizeof atomic);
  return atomic;
}

} // namespace parc::protocol
