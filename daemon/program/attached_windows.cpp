// SPDX-License-Identifier: BSD-3-Clause
#include "daemon/program/attached_windows.hpp"

#include <cassert>

namespace parc::daemon {

void AttachedWindows::open(std::uint32_t entry, shm::AttachedWindow& shared, std::uint32_t session,
                           const Windows::Attached& window) {
  assert(is_free(entry));
  entries_[entry] = {Stage::open, {session, window.index}};
  shared.segment.store(window.where.segment, std::memory_order_relaxed);
  shared.segment_bytes.store(window.where.bytes, std::memory_order_relaxed);
  shared.offset.store(window.where.offset, std::memory_order_relaxed);
  shared.length.store(window.length, std::memory_order_relaxed);
  shared.rights.store(static_cast<std::uint32_t>(window.rights), std::memory_order_relaxed);
  shared.stage.store(Stage::open, std::memory_order_seq_cst);
}

bool AttachedWindows::close(std::uint32_t entry, shm::AttachedWindow& shared, bool ended) {
  shared.stage.store(Stage::closed, std::memory_order_seq_cst);
  const bool inside = shared.inside.load(std::memory_order_seq_cst) != 0;
  entries_[entry].stage = inside && !ended ? Stage::closed : Stage::free;
  if (entries_[entry].stage == Stage::free) shared.stage.store(Stage::free, std::memory_order_seq_cst);
  return inside;
}

std::optional<AttachedWindows::Of> AttachedWindows::leave(std::uint32_t entry, shm::AttachedWindow& shared) {
  Entry& mine = entries_[entry];
  if (mine.stage != Stage::closed || shared.inside.load(std::memory_order_seq_cst) != 0) return {};
  mine.stage = Stage::free;
  shared.stage.store(Stage::free, std::memory_order_seq_cst);
  return mine.of;
}

} // namespace parc::daemon
