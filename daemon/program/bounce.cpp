// SPDX-License-Identifier: BSD-3-Clause
#include "daemon/program/bounce.hpp"

#include "shm/bounce_bell.hpp"

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
  if (take(name, shm::Bounce::What::fetch)) {
    std::memcpy(to, shared_.bytes, length);
    return true;
  }
  if (state_ != State::idle) return false;
  ask(from, length, name, shm::Bounce::What::fetch);
  return asks = true, false;
}

bool Bounce::write(std::uint64_t to, const std::byte* from, std::uint32_t length, std::uint64_t name,
                   bool& asks) {
  assert(length <= most);
  if (take(name, shm::Bounce::What::store)) return true;
  if (state_ != State::idle) return false;
  std::memcpy(shared_.bytes, from, length);
  ask(to, length, name, shm::Bounce::What::store);
  return asks = true, false;
}

protocol::Operated Bounce::operate(std::uint64_t word, const protocol::Atomic& atomic, std::uint64_t name,
                                   std::uint64_t& before, bool& asks) {
  using protocol::Operated;
  if (take(name, shm::Bounce::What::operate)) {
    shm::Bounce::Operated how;
    std::memcpy(&how, shared_.bytes, sizeof how);
    before = how.before;
    return how.made != 0 ? Operated::made : Operated::no_word;
  }
  if (state_ != State::idle) return Operated::not_yet;
  std::memcpy(shared_.bytes, &atomic, sizeof atomic);
  ask(word, sizeof atomic, name, shm::Bounce::What::operate);
  return asks = true, Operated::not_yet;
}

void Bounce::ask(std::uint64_t address, std::uint32_t length, std::uint64_t name, shm::Bounce::What what) {
  name_ = name;
  what_ = what;
  shared_.address.store(address, std::memory_order_relaxed);
  shared_.length.store(length, std::memory_order_relaxed);
  shared_.what.store(what, std::memory_order_relaxed);
  shared_.asked.store(shm::asked_word(++number_, true), std::memory_order_release);
  shm::wake(shared_);
  enter(State::asked);
}

bool Bounce::take(std::uint64_t name, shm::Bounce::What what) {
  if (state_ != State::answered || name_ != name || what_ != what) return false;
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
