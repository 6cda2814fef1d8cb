// SPDX-License-Identifier: BSD-3-Clause
#include "client/operation/hand_over.hpp"

#include "client/base/pieces.hpp"

#include <algorithm>

namespace parc::client {
namespace {

// Between looks at how far the acknowledgement has come.
constexpr std::uint64_t copy_at_once = 64 * 1024;
// A path that brings nothing for so long is taken for one on which nobody reads. One that is broken is made
// anew sooner, mostly; and if not, no more than copies are made.
constexpr auto longest_standstill = std::chrono::seconds(1);

} // namespace

Clock::duration HandOver::patience(Slot slot) {
  const std::uint64_t copies = operations_.entry(slot).own_memory ? 3 : 1;
  return std::chrono::nanoseconds(copies * unacknowledged(slot).size() * copy_ns_per_kib_ / 1024);
}

bool HandOver::keeps_pace(Slot slot, Pace& pace) {
  if (!room_.holds_plenty()) return false;
  const auto rank = static_cast<std::size_t>(operations_.entry(slot).envelope.peer);
  std::atomic<std::uint64_t>& stood_still_at = standstills_[rank % standstills_.size()].at;
  const std::uint64_t taken = operations_.taken_from(slot);
  if (!room_.holds_plenty() || taken == stood_still_at.load(std::memory_order_relaxed)) return false;
  const auto now = Clock::now();
  if (taken != pace.taken) {
    pace = {taken, now};
  } else if (now - pace.since >= longest_standstill) {
    stood_still_at.store(taken, std::memory_order_relaxed);
    return false;
  }
  return true;
}

HandOver::Range HandOver::unacknowledged(Slot slot) {
  const auto& shared = operations_.shared(slot);
  const auto length = operations_.entry(slot).length;
  const auto begin = std::min(shared.front.load(std::memory_order_acquire), length);
  const auto back = std::min(shared.back.load(std::memory_order_acquire), length - begin);
  return {begin, length - back};
}

bool HandOver::may_copy(Slot slot) const {
  const auto& entry = operations_.entry(slot);
  return !entry.local && !entry.is(MessageFlags::synchronous) && !entry.block &&
         operations_.peer_answers(entry.envelope.peer);
}

bool HandOver::prepare(Slot slot) {
  auto& entry = operations_.entry(slot);
  const Range due = unacknowledged(slot);
  const bool from_end = entry.is(MessageFlags::from_end);
  const std::uint64_t size = from_end ? due.end : entry.length - due.begin;
  if (!may_copy(slot) || due.size() == 0) return false;
  if (!room_.reserve(size)) return false;
  entry.held = size; // goes with the slot, as the block does
  auto block = operations_.allocate(size);
  if (!block) return false;
  entry.set_block(block.value(), size);
  // The old memory is the program's again, and it may free it; its segment is not given back before the
  // kernel has forgotten it.
  entry.pinned = !entry.own_memory;
  if (entry.pinned)
    for (const iovec& piece : entry.pieces) arena_.pin(piece.iov_base);
  return true;
}

bool HandOver::perform(parc_op id, Slot slot, std::span<const iovec> pieces) {
  const auto& entry = operations_.entry(slot);
  const Range due = unacknowledged(slot);
  const bool from_end = entry.is(MessageFlags::from_end);
  const std::uint64_t block_begin = from_end ? 0 : entry.length - entry.held;
  auto* const block = static_cast<std::byte*>(entry.block);
  const Range copied = from_end ? copy_upwards(slot, pieces, block, due)
                                : copy_downwards(slot, pieces, block + (due.begin - block_begin), due);
  if (copied.size() == 0 || operations_.done(slot)) return false;
  shm::Request request{};
  request.kind = shm::RequestKind::hand_over;
  request.flags = when(from_end, MessageFlags::from_end);
  request.id = static_cast<std::uint64_t>(id);
  request.address = reinterpret_cast<std::uintptr_t>(block + (copied.begin - block_begin));
  request.length = copied.size();
  request.handed.border = from_end ? copied.end : copied.begin;
  if (!ring_.push(request)) return false;

  const auto& handed = operations_.shared(slot).handed_or_data;
  const auto generation = shm::generation_of(request.id);
  const auto is_handed = [&] { return handed.load(std::memory_order_acquire) == generation; };
  sleep_.anywhere([&] { return operations_.done(slot) || is_handed(); });
  if (entry.own_memory) sleep_.settle_copies();
  return is_handed() && !operations_.done(slot);
}

// From the message's end down to its acknowledged beginning; `block` is where due.begin goes. Returns what
// the hand-over replaces: to the end of the message, even where its last bytes were acknowledged and not
// copied.
HandOver::Range HandOver::copy_downwards(Slot slot, std::span<const iovec> pieces, std::byte* block,
                                         Range due) {
  std::uint64_t next = due.end;
  for (auto front = due.begin; next > front && !operations_.done(slot); front = unacknowledged(slot).begin) {
    const auto part = std::min(copy_at_once, next - front);
    next -= part;
    gather(block + (next - due.begin), pieces, next, part);
  }
  return {next, next == due.end ? next : operations_.entry(slot).length};
}

// The same in the other direction, where the network works downwards from the end; `block` is where the
// message's first byte goes.
HandOver::Range HandOver::copy_upwards(Slot slot, std::span<const iovec> pieces, std::byte* block,
                                       Range due) {
  std::uint64_t next = due.begin;
  for (auto end = due.end; next < end && !operations_.done(slot); end = unacknowledged(slot).end) {
    const auto part = std::min(copy_at_once, end - next);
    gather(block + next, pieces, next, part);
    next += part;
  }
  return {next == due.begin ? next : 0, next};
}

} // namespace parc::client
