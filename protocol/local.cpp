// SPDX-License-Identifier: BSD-3-Clause
// Messages between two programs of this host: one copy, from memory to memory, in slices that take turns.
//
// Memory of a program that cannot be reached from here is copied by that program itself, when it next calls:
// such a message goes on in steps, and stands aside while one of them waits (Engine::stalled_). Whenever a
// program is free to copy something else, all that stand aside are looked at again.
#include "protocol/engine.hpp"

#include <algorithm>
#include <array>
#include <cstring>

namespace parc::protocol {

std::uint64_t Engine::copy() {
  std::uint64_t copied = 0;
  while (copied < settings_.copy_slice && !copies_.empty()) {
    Incoming& message = copies_.front();
    message.hook::Hook<hook::Queue>::unlink();
    copies_.push_back(message);
    const std::uint64_t n = std::min(message.rest.run(), settings_.copy_slice - copied);
    copied += n + 1; // a message of no bytes is work too
    copy_part(message, n);
  }
  return copied;
}

void Engine::copy_part(Incoming& message, std::uint64_t most) {
  if (!(message.steps != nullptr ? copy_step(message) : copy_run(message, most))) {
    if (message.what != Incoming::What::message) lose_place(message);
    return;
  }
  if (message.rest.left() != 0) return;
  Outgoing& write = *message.local;
  check_read_done(message);
  drop_incoming(message);
  finish_write(write, Fault::none);
}

// Of a window's memory: it is not there, whatever the program has said.
void Engine::lose_place(Incoming& message) {
  Outgoing& transfer = *message.local;
  Pair* const pair = message.what == Incoming::What::put ? message.pair : nullptr;
  const bool ends = message.read->memory.ends() || transfer.memory.ends();
  const Fault fault = ends ? Fault::peer : Fault::place;
  fail_read(*message.read, fault);
  drop_incoming(message);
  finish_write(transfer, fault);
  if (pair != nullptr) put_is_over(*pair);
}

// What could not be reached is left, and goes in steps from here on.
bool Engine::copy_run(Incoming& message, std::uint64_t most) {
  const auto n = static_cast<std::uint32_t>(std::min(most, message.rest.run()));
  if (n == 0) return true;
  const Grant before = message.rest;
  const std::uint64_t offset = message.rest.take(n);
  if (!protocol::copy(message.read->memory, message.local->memory, offset, n)) {
    if (message.what != Incoming::What::message) return false;
    message.rest = before;
    message.steps = std::make_unique<CopySteps>();
    return false;
  }
  copied(message, offset, n);
  return true;
}

bool Engine::copy_step(Incoming& message) {
  CopySteps& steps = *message.steps;
  if (steps.name == CrossMemory::no_name) {
    steps.length =
        static_cast<std::uint32_t>(std::min<std::uint64_t>(message.rest.run(), CrossMemory::most_asked));
    steps.offset = message.rest.take(steps.length);
    steps.name = ++steps_;
  }
  const bool fetched = steps.fetched != nullptr;
  if (!take_step(message)) {
    if (!fetched && steps.fetched != nullptr) resume_copies(); // its writer may copy something else
    message.hook::Hook<hook::Queue>::unlink();
    stalled_.push_back(message);
    return false;
  }
  steps.name = CrossMemory::no_name;
  steps.fetched.reset();
  copied(message, steps.offset, steps.length);
  resume_copies();
  return true;
}

// Both programs' memory may be out of reach: what the writer has copied is kept then until the reader has,
// too. Nothing is fetched while the reader is at something else, which bounds what is kept.
bool Engine::take_step(Incoming& message) {
  alignas(64) static thread_local std::array<std::byte, CrossMemory::most_asked> block;
  CopySteps& steps = *message.steps;
  const Pieces& to = message.read->memory;
  const Pieces& from = message.local->memory;
  const std::uint64_t name = steps.name;
  if (steps.fetched != nullptr) return scatter(to, steps.fetched.get(), steps.offset, steps.length, name);
  bool busy = false, fetches = false;
  to.each_other([&](const CrossMemory& memory) { busy |= memory.busy(name); });
  if (busy || !gather(block.data(), from, steps.offset, steps.length, name)) return false;
  if (scatter(to, block.data(), steps.offset, steps.length, name)) return true;
  from.each_other([&](const CrossMemory&) { fetches = true; });
  if (fetches) {
    steps.fetched = std::make_unique_for_overwrite<std::byte[]>(steps.length);
    std::memcpy(steps.fetched.get(), block.data(), steps.length);
  }
  return false;
}

void Engine::copied(Incoming& message, std::uint64_t offset, std::uint64_t length) {
  Outgoing& write = *message.local;
  message.arrived += length;
  totals_.copied += length;
  advance(message, offset, length);
  write.progress.add(offset, length, message.total);
  if (write.of_program()) listener_.progressed(write.cookie, write.progress);
}

// Before anybody hears that the message is over: its memory is its programs' again.
void Engine::end_steps(Incoming& message) {
  if (message.steps == nullptr || message.steps->name == CrossMemory::no_name) return;
  forget_source(message);
  const std::uint64_t name = std::exchange(message.steps->name, CrossMemory::no_name);
  message.read->memory.each_other([&](CrossMemory& memory) { memory.forget(name); });
  resume_copies();
}

// What was asked of the writer is not wanted any more, or is asked for elsewhere.
void Engine::forget_source(const Incoming& message) {
  if (message.steps == nullptr || message.local == nullptr || message.steps->fetched != nullptr) return;
  const std::uint64_t name = message.steps->name;
  message.local->memory.each_other([&](CrossMemory& memory) { memory.forget(name); });
}

void Engine::resume_copies() {
  look_at_atomics();
  while (!stalled_.empty()) {
    Incoming& message = stalled_.front();
    message.hook::Hook<hook::Queue>::unlink();
    copies_.push_back(message);
  }
}

bool Engine::copies_long() const {
  return !copies_.empty() && copies_.front().rest.left() >= settings_.long_copy;
}

} // namespace parc::protocol
