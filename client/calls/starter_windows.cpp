// SPDX-License-Identifier: BSD-3-Clause
// Starting what is about windows (one-sided transfers).
#include "client/calls/starter.hpp"

namespace parc::client {
namespace {

constexpr unsigned known_of_gets = PARC_QUEUED | PARC_FROM_END | PARC_EARLY;
constexpr unsigned known_of_puts = known_of_gets | PARC_SYNCHRONOUS;

} // namespace

Result<parc_op> Starter::unexpose(std::uint64_t window) {
  if (guards_.any()) guards_.settle_begun(); // who is refused hears of it
  const Message message{.envelope = {PARC_ANY_SOURCE, 0, 0, 0}};
  shm::Request request = request_of(shm::RequestKind::unexpose, message);
  request.exposed.window = window;
  return send(request, message);
}

// What the program has read goes first, as what it gets may be the effect of it. The kernels answer it: it
// has its memory when it starts, and no neighbour hears of it.
Result<parc_op> Starter::get(const parc_place& from, std::span<const iovec> pieces, unsigned flags) {
  PARC_TRY(check_peer(from.peer, false));
  Message message;
  PARC_TRY(check(message, {from.peer, from.window, 0, 0}, pieces, flags, known_of_gets));
  message.envelope.data = from.offset;
  if (guards_.any()) guards_.settle_begun_reads();
  prepare_release(message);
  PARC_TRY(locate_read(message));
  PARC_TRY(give_memory(message));
  shm::Request request = request_of(shm::RequestKind::get, message);
  request.place = {from.window, from.offset};
  return send(request, message);
}

// A write that the kernel brings, whoever its peer is.
Result<parc_op> Starter::put(const parc_place& to, std::span<const iovec> pieces, unsigned flags) {
  PARC_TRY(check_peer(to.peer, false));
  Message message;
  PARC_TRY(check(message, {to.peer, to.window, 0, 0}, pieces, flags, known_of_puts));
  message.envelope.data = to.offset;
  settle(pieces, Guards::Use::loads);
  PARC_TRY(locate_write(message));
  shm::Request request = request_of(shm::RequestKind::put, message);
  request.place = {to.window, to.offset};
  PARC_TRY(id, send(request, message));
  if (neighbours_ && neighbours_->may_send(to.peer)) local_puts_.fetch_add(1, std::memory_order_release);
  return id;
}

bool Starter::puts_are_settled() const {
  return local_puts_.load(std::memory_order_acquire) == settled_puts_.load(std::memory_order_relaxed);
}

// Kernels alone end them: their gate is open.
void Starter::settle_puts() {
  const std::uint64_t started = local_puts_.load(std::memory_order_acquire);
  auto puts = operations_.puts_under_way([this](int peer) { return neighbours_->may_send(peer); });
  sleep_.anywhere([&] { return operations_.are_over(puts); });
  settled_puts_.store(started, std::memory_order_relaxed);
}

} // namespace parc::client
