// SPDX-License-Identifier: BSD-3-Clause
#include "client/session/ring.hpp"

#include <sched.h>

namespace parc::client {
namespace {

constexpr int yields_before_pause = 100;

}

thread_local bool Ring::pushing_ = false;

bool Ring::push(const shm::Request& request, shm::Sleep least) {
  pushing_ = true;
  const bool pushed = push_in_turn(request, least, false);
  pushing_ = false;
  return pushed;
}

bool Ring::push_last(const shm::Request& request) {
  pushing_ = true;
  const bool pushed = push_in_turn(request, shm::Sleep::deep, true);
  pushing_ = false;
  return pushed;
}

bool Ring::push_in_turn(const shm::Request& request, shm::Sleep least, bool last) {
  const std::lock_guard hold(lock_);
  if (closed()) return false;
  if (last) closed_.store(true, std::memory_order_release);
  auto& header = control_.header;
  const auto tail = header.request_tail.load(std::memory_order_relaxed);
  if (pipes_.gone() || !wait_for_room(tail)) return false;
  control_.requests[tail % shm::request_slots] = request;
  header.request_tail.store(tail + 1, std::memory_order_release);
  if (shm::must_ring(header.kernel_asleep, least)) pipes_.ring();
  return true;
}

bool Ring::wait_for_room(std::uint64_t tail) {
  const auto& head = control_.header.request_head;
  const auto full = [&] { return tail - head.load(std::memory_order_acquire) >= shm::request_slots; };
  for (int turn = 0; full(); ++turn) {
    if (shm::must_ring(control_.header.kernel_asleep)) pipes_.ring(); // what fills it was not rung for
    if (turn < yields_before_pause)
      sched_yield();
    else
      pipes_.pause();
    if (pipes_.gone()) return false;
  }
  return true;
}

} // namespace parc::client
