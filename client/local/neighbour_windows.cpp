// SPDX-License-Identifier: BSD-3-Clause
#include "client/local/neighbour_windows.hpp"

#include "client/base/in_library.hpp"
#include "client/base/pages.hpp"
#include "system/coarse_clock.hpp"

#include <algorithm>
#include <sched.h>
#include <sys/mman.h>
#include <sys/resource.h>

namespace parc::client {
namespace {

// Then what other programs have made is no use of it.
bool address_space_is_limited() {
  rlimit limit{};
  return getrlimit(RLIMIT_AS, &limit) != 0 || limit.rlim_cur != RLIM_INFINITY;
}

} // namespace

using Stage = shm::AttachedWindow::Stage;

const NeighbourWindows::Entry* NeighbourWindows::find(const parc_place& place) const {
  for (const Entry& each : entries_)
    if (each.is_of(place) && each.use.load(std::memory_order_relaxed) != Entry::Use::none) return &each;
  return nullptr;
}

bool NeighbourWindows::knows(const parc_place& place) const {
  const Entry* const known = find(place);
  return known != nullptr && known->use.load(std::memory_order_relaxed) == Entry::Use::here;
}

NeighbourWindows::Known NeighbourWindows::enter_known(const parc_place& place, std::uint64_t length,
                                                      std::uint32_t right, std::size_t& entry) {
  const Entry* const known = find(place);
  if (known == nullptr) return Known::no;
  entry = static_cast<std::size_t>(known - entries_.data());
  shm::AttachedWindow& shared = control_.windows[entry];
  shared.inside.fetch_add(1, std::memory_order_seq_cst);
  const bool open = shared.stage.load(std::memory_order_seq_cst) == Stage::open;
  const bool here = open && known->use.load(std::memory_order_acquire) == Entry::Use::here;
  if (here && known->is_of(place) && !closed_.load(std::memory_order_seq_cst) &&
      (known->rights & right) != 0 && place.offset <= known->length && length <= known->length - place.offset)
    return Known::entered;
  leave(entry);
  return open ? Known::useless : Known::closed;
}

// The last one out of what is closed says so.
void NeighbourWindows::leave(std::size_t entry) {
  shm::AttachedWindow& shared = control_.windows[entry];
  if (shared.inside.fetch_sub(1, std::memory_order_seq_cst) != 1 ||
      shared.stage.load(std::memory_order_seq_cst) != Stage::closed)
    return;
  const InLibrary here; // a brief call could be cancelled in what follows
  shm::Request request{};
  request.kind = shm::RequestKind::leave_window;
  request.entry = static_cast<std::uint32_t>(entry);
  (void)ring_.push(request);
}

void NeighbourWindows::close() {
  closed_.store(true, std::memory_order_seq_cst);
  const auto end = Clock::now() + std::chrono::seconds(1);
  for (const shm::AttachedWindow& window : control_.windows)
    while (window.inside.load(std::memory_order_seq_cst) != 0 && Clock::now() < end) sched_yield();
}

void NeighbourWindows::look_at_freed() {
  const std::lock_guard hold(lock_);
  freed_.store(control_.windows_freed.load(std::memory_order_relaxed), std::memory_order_relaxed);
  forget_freed();
}

// Under lock_, which attach() has, too: none of these opens again meanwhile.
void NeighbourWindows::forget_freed() {
  for (std::size_t i = 0; i < entries_.size(); ++i) {
    Entry& entry = entries_[i];
    if (entry.use.load(std::memory_order_relaxed) == Entry::Use::none ||
        control_.windows[i].stage.load(std::memory_order_seq_cst) != Stage::free ||
        control_.windows[i].inside.load(std::memory_order_seq_cst) != 0)
      continue;
    entry.use.store(Entry::Use::none, std::memory_order_relaxed);
    entry.segment = {};
  }
}

bool NeighbourWindows::is_refused(const Name& name) const {
  const auto found = refused_.find(name);
  return found != refused_.end() && coarse_ms() - found->second.at < found->second.for_ms;
}

void NeighbourWindows::refuse(const Name& name) {
  if (refused_.size() >= most_refused) refused_.clear();
  Refused& refused = refused_[name];
  refused = {coarse_ms(), std::clamp(2 * refused.for_ms, first_refusal_ms, longest_refusal_ms)};
}

// By one thread at a time, others have their transfers made meanwhile. True: look again.
bool NeighbourWindows::attach(const parc_place& place) {
  const std::unique_lock attaching(attaching_, std::try_to_lock);
  if (!attaching) return false;
  const Name name{place.peer, place.window};
  std::size_t free = 0;
  {
    const std::lock_guard hold(lock_);
    if (closed_.load(std::memory_order_relaxed) || is_refused(name)) return false;
    forget_freed();
    if (find(place) != nullptr) return true;
    for (; free < entries_.size(); ++free)
      if (entries_[free].use.load(std::memory_order_relaxed) == Entry::Use::none &&
          control_.windows[free].stage.load(std::memory_order_seq_cst) == Stage::free)
        break;
    if (free == entries_.size()) return false;
    if (address_space_is_limited()) {
      refuse(name);
      return false;
    }
  }
  shm::Request request{};
  request.kind = shm::RequestKind::attach_window;
  request.peer = place.peer;
  request.place.window = place.window;
  request.entry = static_cast<std::uint32_t>(free);
  std::int32_t answer = -1;
  const int code = control_calls_.run(request, &answer);
  const std::lock_guard hold(lock_);
  if (code != PARC_OK || answer < 0) {
    refuse(name);
    return false;
  }
  refused_.erase(name);
  Entry& entry = entries_[free];
  entry.peer.store(place.peer, std::memory_order_relaxed);
  entry.window.store(place.window, std::memory_order_relaxed);
  entry.use.store(Entry::Use::useless, std::memory_order_relaxed);
  attach_segment(entry, control_.windows[free]);
  return true;
}

void NeighbourWindows::attach_segment(Entry& entry, const shm::AttachedWindow& window) {
  const std::uint64_t bytes = window.segment_bytes.load(std::memory_order_relaxed);
  const std::uint64_t offset = window.offset.load(std::memory_order_relaxed);
  entry.length = window.length.load(std::memory_order_relaxed);
  entry.rights = window.rights.load(std::memory_order_relaxed);
  auto attached = shm::Segment::attach(window.segment.load(std::memory_order_relaxed), bytes);
  if (!attached) return;
  entry.segment = std::move(attached).value();
  std::byte* const base = entry.segment.data();
  const std::uint64_t begin = round_down(offset, page_size()),
                      end = round_up(offset + entry.length, page_size());
  const int access = (entry.rights & PARC_MAY_PUT) != 0 ? PROT_READ | PROT_WRITE : PROT_READ;
  if (mprotect(base, entry.segment.size(), PROT_NONE) != 0 ||
      mprotect(base + begin, end - begin, access) != 0)
    return;
  entry.base = base + offset;
  entry.use.store(Entry::Use::here, std::memory_order_release);
}

} // namespace parc::client
