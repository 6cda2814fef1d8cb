// SPDX-License-Identifier: BSD-3-Clause
// Starting what is about windows (one-sided transfers).
#include "client/calls/starter.hpp"

namespace parc::client {
namespace {

constexpr unsigned known_of_gets = PARC_QUEUED | PARC_FROM_END | PARC_EARLY;

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
  request.got = {from.window, from.offset};
  return send(request, message);
}

} // namespace parc::client
