// SPDX-License-Identifier: BSD-3-Clause
// Waits for writes: the copy, and the hand-over to the kernel. Invariant: every byte of the message that is
// not acknowledged when the kernel takes the hand-over lies in the memory that it names; what was
// acknowledged before the copy reached it is never read again.
#include "client/waits.hpp"

#include "client/pieces.hpp"

#include <algorithm>

namespace parc::client {
namespace {

// Between looks at how far the acknowledgement has come.
constexpr std::uint64_t copy_at_once = 64 * 1024;

} // namespace

int Waits::finish_write(parc_op id, Slot slot, parc_status& status) {
  const auto copy_time = std::chrono::nanoseconds(unacknowledged(slot).size() * copy_ns_per_kib_ / 1024);
  Woken how = until_done(slot, Clock::now() + copy_time);
  if (how == Woken::late) {
    if (hand_over(id, slot)) return operations_.detach(slot, status);
    how = until_done(slot);
  }
  return ended(how, slot, status);
}

Waits::Range Waits::unacknowledged(Slot slot) {
  const auto& shared = operations_.shared(slot);
  const auto length = operations_.entry(slot).length;
  const auto begin = std::min(shared.front.load(std::memory_order_acquire), length);
  const auto back = std::min(shared.back.load(std::memory_order_acquire), length - begin);
  return {begin, length - back};
}

// True when the kernel has confirmed; false: wait for the network instead (the bytes are in the arena
// already, there is no room for a copy, or nothing is left to copy).
bool Waits::hand_over(parc_op id, Slot slot) {
  auto& entry = operations_.entry(slot);
  const Range due = unacknowledged(slot);
  const Range block_range = entry.from_end ? Range{0, due.end} : Range{due.begin, entry.length};
  if (entry.block || due.size() == 0 || !operations_.peer_answers(entry.address.peer)) return false;
  if (!room_.reserve(block_range.size())) return false;
  entry.held = block_range.size(); // goes with the slot, as the block does
  auto block = starts_.allocate(block_range.size());
  if (!block) return false;
  entry.block = block.value();

  auto* const bytes = static_cast<std::byte*>(entry.block);
  const Range copied = entry.from_end ? copy_upwards(slot, bytes, due) : copy_downwards(slot, bytes, due);
  if (copied.size() == 0 || operations_.done(slot)) return false;
  shm::Request request{};
  request.kind = shm::RequestKind::hand_over;
  request.flags = entry.from_end ? shm::flag_from_end : std::uint8_t{0};
  request.id = static_cast<std::uint64_t>(id);
  request.address = reinterpret_cast<std::uintptr_t>(bytes + (copied.begin - block_range.begin));
  request.length = copied.size();
  request.extra = entry.from_end ? copied.end : copied.begin;
  // The old memory is the program's again, and it may free it; its segment is not given back before the
  // kernel has forgotten it.
  entry.pinned = true;
  for (const iovec& piece : entry.pieces) arena_.pin(piece.iov_base);
  if (!ring_.push(request)) return false;

  const auto& handed = operations_.shared(slot).handed;
  const auto generation = shm::generation_of(request.id);
  const auto is_handed = [&] { return handed.load(std::memory_order_acquire) == generation; };
  (void)rest_.until([&] { return operations_.done(slot) || is_handed(); });
  return is_handed() && !operations_.done(slot);
}

// From the message's end down to its acknowledged beginning. Returns what the hand-over replaces: to the end
// of the message, even where its last bytes were acknowledged and not copied.
Waits::Range Waits::copy_downwards(Slot slot, std::byte* block, Range due) {
  const auto& entry = operations_.entry(slot);
  std::uint64_t next = due.end;
  for (auto front = due.begin; next > front && !operations_.done(slot); front = unacknowledged(slot).begin) {
    const auto part = std::min(copy_at_once, next - front);
    next -= part;
    gather(block + (next - due.begin), entry.pieces, next, part);
  }
  return {next, next == due.end ? next : entry.length};
}

// The same in the other direction: the network works downwards from the end.
Waits::Range Waits::copy_upwards(Slot slot, std::byte* block, Range due) {
  const auto& entry = operations_.entry(slot);
  std::uint64_t next = due.begin;
  for (auto end = due.end; next < end && !operations_.done(slot); end = unacknowledged(slot).end) {
    const auto part = std::min(copy_at_once, end - next);
    gather(block + next, entry.pieces, next, part);
    next += part;
  }
  return {next == due.begin ? next : 0, next};
}

} // namespace parc::client
