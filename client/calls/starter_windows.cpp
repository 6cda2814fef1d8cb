// SPDX-License-Identifier: BSD-3-Clause
// Starting what is about windows (one-sided transfers).
#include "client/calls/starter.hpp"

#include <algorithm>

namespace parc::client {
namespace {

constexpr unsigned known_of_gets = PARC_QUEUED | PARC_FROM_END | PARC_EARLY;
constexpr unsigned known_of_puts = known_of_gets | PARC_SYNCHRONOUS;

using MaybeRows = std::optional<protocol::Rows>;

Result<void> check_rows(const MaybeRows& rows, std::uint64_t length, bool put) {
  if (!rows || length == 0) return success();
  const std::uint64_t row = rows->row, count = row == 0 ? 0 : length / row;
  if (count == 0 || count > UINT32_MAX || count * row != length)
    return error(PARC_EINVAL, "{} bytes are not 1 to {} rows of {} bytes", length, UINT32_MAX, row);
  const auto stride = static_cast<std::uint64_t>(rows->stride);
  if (put && count > 1 && std::min(stride, 0 - stride) < row)
    return error(PARC_EINVAL, "rows of {} bytes that are {} apart overlap: they cannot be put", row,
                 rows->stride);
  return success();
}

void name_place(shm::Request& request, const parc_place& place, const MaybeRows& rows) {
  const bool some = rows && request.length != 0;
  request.place = {place.window, place.offset, some ? rows->stride : 0};
  request.entry = some ? static_cast<std::uint32_t>(request.length / rows->row) : 0;
}

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
Result<parc_op> Starter::get(const parc_place& from, std::span<const iovec> pieces, unsigned flags,
                             const std::optional<protocol::Rows>& rows) {
  PARC_TRY(check_peer(from.peer, false));
  Message message;
  PARC_TRY(check(message, {from.peer, from.window, 0, 0}, pieces, flags, known_of_gets));
  PARC_TRY(check_rows(rows, message.length, false));
  message.envelope.data = from.offset;
  if (guards_.any()) guards_.settle_begun_reads();
  prepare_release(message, shm::RequestKind::get);
  PARC_TRY(far, leaves_the_host(message));
  if (!far) message.releases = message.pays = false;
  PARC_TRY(locate_read(message));
  PARC_TRY(give_memory(message));
  shm::Request request = request_of(shm::RequestKind::get, message);
  name_place(request, from, rows);
  return send(request, message);
}

// Within a host a get is a copy, and programs there may know of each other what no kernel sees: the locks of
// MPI's windows lie in memory that they share. Where it is not known who is near, everybody is.
Result<bool> Starter::leaves_the_host(const Message& get) {
  if (!get.releases || get.is(MessageFlags::early) || guards_.releases_at_once()) return true;
  if (!neighbours_) return false;
  PARC_TRY(near, neighbours_->reaches(get.envelope.peer));
  return !near;
}

// A write that the kernel brings, whoever its peer is.
Result<parc_op> Starter::put(const parc_place& to, std::span<const iovec> pieces, unsigned flags,
                             const std::optional<protocol::Rows>& rows) {
  PARC_TRY(check_peer(to.peer, false));
  Message message;
  PARC_TRY(check(message, {to.peer, to.window, 0, 0}, pieces, flags, known_of_puts));
  PARC_TRY(check_rows(rows, message.length, true));
  message.envelope.data = to.offset;
  settle(pieces, Guards::Use::loads);
  PARC_TRY(locate_write(message));
  shm::Request request = request_of(shm::RequestKind::put, message);
  name_place(request, to, rows);
  return send_put(request, message);
}

Result<parc_op> Starter::send_put(const shm::Request& request, const Message& message) {
  PARC_TRY(id, send(request, message));
  if (neighbours_ && neighbours_->may_reach(request.peer))
    local_puts_.fetch_add(1, std::memory_order_release);
  return id;
}

// What was there before is in its status, and goes to the program's word when it is waited for.
Result<parc_op> Starter::atomic(const parc_place& at, const protocol::Atomic& atomic, std::uint64_t* before,
                                unsigned flags) {
  PARC_TRY(check_peer(at.peer, false));
  if (!is_good(atomic))
    return error(PARC_EINVAL,
                 "there is no atomic operation {} on {} bytes: they are PARC_ADD to PARC_XOR, on 4 "
                 "or 8 bytes",
                 static_cast<unsigned>(atomic.what), atomic.width);
  if (at.offset % atomic.width != 0)
    return error(PARC_EINVAL, "an atomic operation on {} bytes at {} is misaligned", atomic.width, at.offset);
  const iovec word{before, before != nullptr ? sizeof *before : 0};
  Message message;
  PARC_TRY(check(message, {at.peer, at.window, 0, 0}, {&word, 1}, flags, PARC_QUEUED));
  message.envelope.data = at.offset;
  message.length = atomic.width;
  settle(message.pieces, Guards::Use::stores);
  shm::Request request = request_of(shm::RequestKind::atomic, message);
  request.atomic = {at.window, at.offset, atomic.operand};
  request.address = atomic.compare;
  request.length = 0;
  request.entry = static_cast<std::uint32_t>(atomic.what) | std::uint32_t{atomic.width} << 8;
  return send_put(request, message);
}

bool Starter::puts_are_settled() const {
  return local_puts_.load(std::memory_order_acquire) == settled_puts_.load(std::memory_order_relaxed);
}

// Kernels alone end them: their gate is open.
void Starter::settle_puts(int peer) {
  const std::uint64_t started = local_puts_.load(std::memory_order_acquire);
  auto puts = operations_.puts_under_way([peer](int to) { return to == peer; });
  sleep_.anywhere([&] { return operations_.are_over(puts); });
  if (operations_.puts_under_way([this](int to) { return neighbours_->may_reach(to); }).empty())
    settled_puts_.store(started, std::memory_order_relaxed);
}

} // namespace parc::client
