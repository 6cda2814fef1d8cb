// SPDX-License-Identifier: BSD-3-Clause
// Starting what is about windows (one-sided transfers).
#include "client/calls/starter.hpp"

#include "client/base/pages.hpp"
#include "client/base/pieces.hpp"
#include "protocol/atomic_operation.hpp"

#include <algorithm>
#include <cstring>
#include <sched.h>
#include <utility>

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

// What is started, and not waited for at once, is copied here only where that is sooner done than told.
constexpr std::uint64_t longest_begun_here = 4096;
constexpr std::uint64_t longest_brief = 65536; // it cannot be cancelled, and looks for nothing
constexpr std::uint32_t copies_between_looks = 128;

bool is_aligned(const std::byte* word, std::size_t width) {
  return address_of(word) % width == 0;
}

} // namespace

Result<parc_op> Starter::unexpose(std::uint64_t window) {
  if (guards_.any()) guards_.settle_begun(); // who is refused hears of it
  const Message message{.envelope = {PARC_ANY_SOURCE, 0, 0, 0}};
  shm::Request request = request_of(shm::RequestKind::unexpose, message);
  request.exposed.window = window;
  return send(request, message);
}

// What goes to the kernel keeps its order there: the gate's, that of puts and of messages that have no cell
// yet, and a trace's.
bool Starter::may_copy() {
  return neighbours_ && !operations_.traced() && !guards_.any() && !ring_.dead() &&
         !neighbours_->pages_are_closed();
}

bool Starter::may_enter(int peer) {
  if (!may_copy() || !check_peer(peer, false) || !puts_are_settled()) return false;
  if (neighbours_->anything_waits()) sleep_.look();
  return !neighbours_->anything_waits();
}

// Two threads' may be counted as one.
bool Starter::is_look_due() {
  const std::uint32_t before = copies_.load(std::memory_order_relaxed);
  copies_.store(before + 1, std::memory_order_relaxed);
  return before % copies_between_looks == 0;
}

// Who copies again and again may make no other call: now and then it looks, as in those. That the kernel has
// gone the next call hears.
void Starter::look_after_copies() {
  sleep_.look();
  (void)late_reads_.serve();
  (void)sleep_.kernel_went();
  sched_yield();
}

template <class Use> bool Starter::use_at_once(const parc_place& place, std::uint64_t length,
                                               std::uint32_t right, const Use& use) {
  if (length == 0 || !may_enter(place.peer)) return false;
  {
    const auto window =
        windows_.enter(place, length, right, [&] { return neighbours_->may_reach(place.peer); });
    if (!window || !use(window.memory())) return false;
  }
  if (length <= longest_brief || is_look_due()) look_after_copies(); // a brief one comes here when one is due
  return true;
}

// As that, of a few bytes of a window that is attached, where no look is due: nothing is waited for, and no
// lock taken.
template <class Use> bool Starter::use_briefly(const parc_place& place, std::uint64_t length,
                                               std::uint32_t right, const Use& use) {
  if (length == 0 || length > longest_brief || !may_copy() || !knows_puts_settled() ||
      neighbours_->anything_waits() || is_look_due())
    return false;
  const auto window = windows_.enter_attached(place, length, right);
  return window && use(window.memory());
}

bool Starter::get_at_once(const parc_place& from, const iovec& buffer, Pace pace) {
  const auto copy = [&](const std::byte* there) {
    std::memcpy(buffer.iov_base, there, buffer.iov_len);
    return true;
  };
  if (buffer.iov_base == nullptr) return false;
  return pace == Pace::brief ? use_briefly(from, buffer.iov_len, PARC_MAY_GET, copy)
                             : use_at_once(from, buffer.iov_len, PARC_MAY_GET, copy);
}

bool Starter::put_at_once(const parc_place& to, const iovec& buffer, Pace pace) {
  const auto copy = [&](std::byte* there) {
    std::memcpy(there, buffer.iov_base, buffer.iov_len);
    return true;
  };
  if (buffer.iov_base == nullptr) return false;
  return pace == Pace::brief ? use_briefly(to, buffer.iov_len, PARC_MAY_PUT, copy)
                             : use_at_once(to, buffer.iov_len, PARC_MAY_PUT, copy);
}

bool Starter::operate_at_once(const parc_place& at, const protocol::Atomic& atomic, std::uint64_t* before,
                              Pace pace) {
  const auto operate = [&](std::byte* there) {
    if (!is_aligned(there, atomic.width)) return false;
    const std::uint64_t was = protocol::operate(there, atomic);
    if (before != nullptr) *before = was;
    return true;
  };
  if (!is_good(atomic) || at.offset % atomic.width != 0) return false;
  return pace == Pace::brief ? use_briefly(at, atomic.width, PARC_MAY_PUT, operate)
                             : use_at_once(at, atomic.width, PARC_MAY_PUT, operate);
}

// Begins what is over when this returns. PARC_OP_NULL: it is the kernel's to make. Its slot first: what takes
// effect must not fail behind that.
template <class Use> Result<parc_op> Starter::start_here(shm::RequestKind kind, Message& message,
                                                         const parc_place& place, std::uint32_t right,
                                                         const Use& use) {
  if (message.length == 0 || message.length > longest_begun_here || !windows_.knows(place) ||
      !may_enter(place.peer))
    return PARC_OP_NULL;
  const bool pays = std::exchange(message.pays, false);
  PARC_TRY(id, operations_.begin(kind, message));
  std::uint64_t data = 0;
  bool used = false;
  {
    const auto window = windows_.enter(place, message.length, right, [] { return false; });
    if (window) used = use(window.memory(), data);
  }
  if (!used) {
    operations_.abandon(id);
    message.pays = pays;
    return PARC_OP_NULL;
  }
  operations_.end(
      id,
      {.source = message.envelope.peer, .tag = message.envelope.tag, .data = data, .total = message.length});
  if (message.is(MessageFlags::queued) && !Operations::is_write(id)) sleep_.tell_others();
  if (is_look_due()) look_after_copies();
  return id;
}

// What the program has read goes first, as what it gets may be the effect of it. The kernels answer it: it
// has its memory when it starts, and no neighbour hears of it.
Result<parc_op> Starter::get(const parc_place& from, std::span<const iovec> pieces, unsigned flags,
                             const std::optional<protocol::Rows>& rows) {
  PARC_TRY(check_peer(from.peer, false));
  Message message;
  PARC_TRY(check(message, {from.peer, from.window, 0, 0}, pieces, flags, known_of_gets));
  PARC_TRY(check_rows(rows, message.length, false));
  if (!rows) {
    PARC_TRY(here, start_here(shm::RequestKind::get, message, from, PARC_MAY_GET,
                              [&](const std::byte* there, std::uint64_t&) {
                                scatter(pieces, there, message.length);
                                return true;
                              }));
    if (here != PARC_OP_NULL) return here;
  }
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
  if (!rows) {
    PARC_TRY(here, start_here(shm::RequestKind::put, message, to, PARC_MAY_PUT,
                              [&](std::byte* there, std::uint64_t&) {
                                gather(there, pieces, 0, message.length);
                                return true;
                              }));
    if (here != PARC_OP_NULL) return here;
  }
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
  message.length = atomic.width;
  PARC_TRY(here, start_here(shm::RequestKind::atomic, message, at, PARC_MAY_PUT,
                            [&](std::byte* there, std::uint64_t& data) {
                              if (!is_aligned(there, atomic.width)) return false;
                              data = protocol::operate(there, atomic);
                              return true;
                            }));
  if (here != PARC_OP_NULL) return here;
  message.envelope.data = at.offset;
  settle(message.pieces, Guards::Use::stores);
  shm::Request request = request_of(shm::RequestKind::atomic, message);
  request.atomic = {at.window, at.offset, atomic.operand};
  request.address = atomic.compare;
  request.length = 0;
  request.entry = static_cast<std::uint32_t>(atomic.what) | std::uint32_t{atomic.width} << 8;
  return send_put(request, message);
}

bool Starter::puts_are_settled() {
  constexpr std::uint32_t asked_between_looks = 16;
  const std::uint64_t started = local_puts_.load(std::memory_order_acquire);
  if (knows_puts_settled()) return true;
  if (asked_.fetch_add(1, std::memory_order_relaxed) % asked_between_looks != 0) return false;
  if (!operations_.puts_under_way([this](int to) { return neighbours_->may_reach(to); }).empty())
    return false;
  settled_puts_.store(started, std::memory_order_relaxed);
  return true;
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
