// SPDX-License-Identifier: BSD-3-Clause
#include "daemon/program/bounce.hpp"

#include <cassert>
#include <cstring>

namespace parc::daemon {

void Bounce::enter(State next) {
  assert(next == State::asked      ? state_ == State::idle
         : next == State::answered ? state_ == State::asked
         : next == State::unwanted ? state_ == State::asked
                                   : state_ == State::answered || state_ == State::unwanted);
  state_ = next;
}

bool Bounce::read(std::byte* to, std::uint64_t from, std::uint32_t length, std::uint64_t name, bool& asks) {
  assert(length <= most);
  if (take(name, false)) {
    std::memcpy(to, shared_.bytes, length);
    return true;
  }
  if (state_ != State::idle) return false;
  ask(from, length, name, false);
  return asks = true, false;
}

bool Bounce::write(std::uint64_t to, const std::byte* from, std::uint32_t length, std::uint64_t name,
                   bool& asks) {
  assert(length <= most);
  if (take(name, true)) return true;
  if (state_ != State::idle) return false;
  std::memcpy(shared_.bytes, from, length);
  ask(to, length, name, true);
  return asks = true, false;
}

void Bounce::ask(std::uint64_t address, std::uint32_t length, std::uint64_t name, bool into) {
  name_ = name;
  into_ = into;
  shared_.address.store(address, std::memory_order_relaxed);
  shared_.length.store(length, std::memory_order_relaxed);
  shared_.into.store(into ? 1 : 0, std::memory_order_relaxed);
  shared_.asked.store(shm::asked_word(++number_, true), std::memory_order_release);
  enter(State::asked);
}

bool Bounce::take(std::uint64_t name, bool into) {
  if (state_ != State::answered || name_ != name || into_ != into) return false;
  enter(State::idle);
  return true;
}

void Bounce::forget(std::uint64_t name) {
  if (name_ != name) return;
  if (state_ == State::answered) return enter(State::idle);
  if (state_ != State::asked) return;
  shared_.asked.store(shm::asked_word(number_, false), std::memory_order_release);
  enter(State::unwanted);
}

bool Bounce::is_answered() const {
  return (state_ == State::asked || state_ == State::unwanted) &&
         shared_.answered.load(std::memory_order_acquire) == number_;
}

void Bounce::look() {
  if (is_answered()) enter(state_ == State::asked ? State::answered : State::idle);
}

} // namespace parc::daemon
