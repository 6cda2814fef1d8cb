// SPDX-License-Identifier: BSD-3-Clause
#include "shm/onlooker.hpp"

#include "shm/segment.hpp"
#include "system/coarse_clock.hpp"

#include <algorithm>
#include <optional>
#include <vector>

namespace parc::shm {
namespace {

// None: the slot is free, or changed while it was looked at.
std::optional<Unfinished> look_at_slot(const Operation& slot, bool writes, std::uint32_t now) {
  const std::uint64_t state = slot.state.load(std::memory_order_acquire);
  const Phase phase = phase_of(state);
  if (phase != Phase::pending && phase != Phase::begun) return {};
  Unfinished seen;
  seen.peer = std::max(slot.source.load(std::memory_order_relaxed), -1);
  const std::uint64_t tag = slot.tag.load(std::memory_order_relaxed);
  if (phase == Phase::pending)
    switch (static_cast<OneSided>(slot.departure_or_data.load(std::memory_order_relaxed))) {
    case OneSided::get:
    case OneSided::put: seen.one_sided = true; break;
    case OneSided::atomic: seen.one_sided = seen.atomic = true; break;
    case OneSided::none: break;
    }
  seen.tag = seen.one_sided ? tag_in(tag) : std::max(tag_in(tag), -1);
  seen.context = context_in(tag);
  seen.bytes = slot.total.load(std::memory_order_relaxed);
  seen.probes = seen.bytes == probe_total;
  if (seen.probes) seen.bytes = 0;
  seen.in_place = std::min(seen.bytes, slot.front.load(std::memory_order_relaxed) +
                                           slot.back.load(std::memory_order_relaxed));
  seen.age_ms = now - slot.posted.load(std::memory_order_relaxed);
  if (seen.age_ms > UINT32_MAX / 2) seen.age_ms = 0; // it was posted after `now`
  seen.writes = writes;
  seen.begun = phase == Phase::begun;
  std::atomic_thread_fence(std::memory_order_acquire);
  if (slot.state.load(std::memory_order_relaxed) != state) return {};
  return seen;
}

std::string_view text_of(CrossMemory memory) {
  switch (memory) {
  case CrossMemory::no_neighbours: break;
  case CrossMemory::reached: return "in place";
  case CrossMemory::refused: return "copied (not permitted)";
  case CrossMemory::off: return "copied";
  case CrossMemory::lost: return "copied (not reached)";
  }
  return "-";
}

} // namespace

void look_at(const Control& control, const Tables& tables, std::size_t most, RankState& rank) {
  const std::uint32_t now = coarse_ms();
  rank.joined = true;
  rank.resting = control.header.program_asleep.load(std::memory_order_relaxed) != 0 ||
                 control.header.program_spinning.load(std::memory_order_relaxed) != 0;
  const NeighbourCounters& counted = control.header.neighbours;
  rank.neighbours = {.messages = counted.messages.load(std::memory_order_relaxed),
                     .bytes = counted.bytes.load(std::memory_order_relaxed),
                     .taken = counted.taken.load(std::memory_order_relaxed),
                     .interrupts = counted.interrupts.load(std::memory_order_relaxed),
                     .received = counted.received.load(std::memory_order_relaxed),
                     .received_bytes = counted.received_bytes.load(std::memory_order_relaxed),
                     .memory = text_of(control.header.cross_memory.load(std::memory_order_relaxed))};
  const WaitCounters& waits = control.header.waits;
  rank.waits = {.rested = waits.waits.load(std::memory_order_relaxed),
                .released = waits.released.load(std::memory_order_relaxed),
                .faults = waits.faults.load(std::memory_order_relaxed),
                .late_faults = waits.late_faults.load(std::memory_order_relaxed)};
  const BacklogCounters& backlog = control.header.backlog;
  rank.backlog = {.to_neighbours = backlog.to_neighbours.load(std::memory_order_relaxed),
                  .to_neighbours_bytes = backlog.to_neighbours_bytes.load(std::memory_order_relaxed),
                  .from_neighbours = backlog.from_neighbours.load(std::memory_order_relaxed),
                  .from_neighbours_bytes = backlog.from_neighbours_bytes.load(std::memory_order_relaxed),
                  .put_off = backlog.put_off.load(std::memory_order_relaxed),
                  .kernel_held = control.header.kernel_held.load(std::memory_order_relaxed),
                  .kernel_unread = control.header.kernel_unread.load(std::memory_order_relaxed)};
  rank.operations.clear();
  tables.each([&](std::uint32_t slot) {
    if (const auto seen = look_at_slot(tables.operation(slot), is_write(slot), now))
      rank.operations.push_back(*seen);
  });
  const std::size_t shown = std::min(rank.operations.size(), most);
  rank.more = rank.operations.size() - shown;
  if (rank.more != 0)
    std::ranges::nth_element(rank.operations, rank.operations.begin() + static_cast<std::ptrdiff_t>(shown),
                             std::ranges::greater(), &Unfinished::age_ms);
  rank.operations.resize(shown);
  std::ranges::stable_sort(rank.operations, std::ranges::greater(), &Unfinished::age_ms);
}

bool look_at_segment(int id, std::size_t most, RankState& rank) {
  const Result<Segment> segment = Segment::attach_to_read(id, sizeof(Control));
  if (!segment) return false;
  auto& control = *reinterpret_cast<Control*>(segment.value().data());
  if (control.header.magic != control_magic ||
      control.header.version.load(std::memory_order_acquire) != layout_version)
    return false;
  Tables tables(control);
  std::vector<Segment> blocks;
  for (unsigned left = std::min(control.blocks.load(std::memory_order_acquire), most_blocks); left != 0;
       --left) {
    const unsigned next = tables.blocks() + 1;
    auto block = Segment::attach_to_read(control.block_segments[next - 1].load(std::memory_order_relaxed),
                                         bytes_of_block(next));
    if (!block) break; // the program has just gone
    tables.add(blocks.emplace_back(std::move(block).value()).data());
  }
  look_at(control, tables, most, rank);
  return true;
}

} // namespace parc::shm
