// SPDX-License-Identifier: BSD-3-Clause
#include "client/late_reads.hpp"

#include "client/pages.hpp"
#include "client/pieces.hpp"
#include "system/coarse_clock.hpp"

#include <algorithm>

namespace parc::client {
namespace {

constexpr std::uint32_t patience_ms = 60'000;

std::uint64_t bytes_of(const Operations::Entry& entry, const shm::Operation& shared) {
  return std::min(entry.length, shared.total.load(std::memory_order_relaxed));
}

} // namespace

bool LateReads::find(Slot own) const {
  bool found = own != none && operations_.wants_memory(own);
  if (!found)
    operations_.each_slot([&](Slot slot) {
      found = found || (shm::is_read(slot) && operations_.live(slot) && operations_.wants_memory(slot));
    });
  return found;
}

bool LateReads::serve_all(Slot own) {
  bool enough = own == none || !operations_.wants_memory(own) || place(own);
  operations_.each_slot([&](Slot slot) {
    if (!enough || !shm::is_read(slot)) return;
    const auto id = operations_.live(slot);
    if (!id || !operations_.wants_memory(slot) || !operations_.hold(*id)) return;
    enough = !operations_.wants_memory(slot) || place(slot); // another thread may have been faster
    operations_.let_go(slot);
  });
  if (enough) short_since_.store(0, std::memory_order_relaxed);
  return enough;
}

// Of a slot that the caller has claimed or holds. What is given up is read by nobody: its message is taken
// off its writer all the same.
bool LateReads::place(Slot slot) {
  const std::uint64_t bytes = bytes_of(operations_.entry(slot), operations_.shared(slot));
  void* block = nullptr;
  if (bytes != 0) {
    auto allocated = allocate(bytes);
    if (!allocated && !in_vain(slot, bytes)) return false;
    if (!allocated) operations_.set_given_up(slot);
    block = allocated ? allocated.value() : nullptr;
  }
  place(slot, block, block != nullptr ? bytes : 0);
  return true;
}

// Enough for that, with what there is now.
bool LateReads::others_have_memory(std::uint64_t bytes, Slot than) {
  std::uint64_t theirs = 0;
  operations_.each_slot([&](Slot slot) { theirs += slot != than ? memory_of(slot) : 0; });
  if (theirs == 0 || theirs >= bytes) return theirs != 0;
  auto rest = operations_.allocate(bytes - theirs);
  if (rest) arena_.free(rest.value());
  return rest.has_value();
}

// Of one that somebody waits for, or whose program has let it go: as much as it may be.
std::uint64_t LateReads::memory_of(Slot slot) {
  if (!operations_.may_have_memory(slot)) return 0;
  const auto id = operations_.live(slot);
  if (!id || !operations_.hold(*id)) return operations_.shared(slot).total.load(std::memory_order_relaxed);
  const Operations::Entry& entry = operations_.entry(slot);
  const std::uint64_t bytes = entry.block != nullptr ? entry.length : 0;
  operations_.let_go(slot);
  return bytes;
}

// What is under way may leave memory when it ends; but not for ever.
bool LateReads::in_vain(Slot slot, std::uint64_t bytes) {
  if (!others_have_memory(bytes, slot)) return true;
  const std::uint32_t now = std::max(coarse_ms(), 1U);
  std::uint32_t since = 0;
  if (short_since_.compare_exchange_strong(since, now, std::memory_order_relaxed)) return false;
  return now - since >= patience_ms;
}

void LateReads::place(Slot slot, void* block, std::uint64_t bytes) {
  Operations::Entry& entry = operations_.entry(slot);
  entry.block = block;
  operations_.set_late(slot, false);
  shm::Request request{};
  request.kind = shm::RequestKind::place;
  request.id = shm::id_of(generation_in(entry.tag.load(std::memory_order_relaxed)), slot);
  request.flags = entry.from_end ? shm::flag_from_end : std::uint8_t{0};
  request.address = address_of(block);
  request.length = bytes;
  (void)ring_.push(request); // where the kernel has gone the read ends with that
}

// A signal handler may have interrupted whoever is about to, or has the arena's lock.
void LateReads::place_from_what_is_there(parc_op id) {
  const Slot slot = slot_of(id);
  if (!operations_.any_late() || Ring::pushing() || !operations_.is_live(id) ||
      !operations_.wants_memory(slot) || !operations_.hold(id))
    return;
  const std::uint64_t bytes = bytes_of(operations_.entry(slot), operations_.shared(slot));
  const bool wants = operations_.wants_memory(slot);
  void* const block = wants && bytes != 0 ? arena_.allocate_without_waiting(bytes) : nullptr;
  if (wants && (block != nullptr || bytes == 0)) place(slot, block, bytes);
  operations_.let_go(slot);
}

Result<void*> LateReads::allocate(std::size_t bytes) {
  for (;;) {
    auto block = operations_.allocate(bytes);
    if (block || block.error().code != PARC_ENOMEM) return block;
    if (empty_one() || take_back_one()) continue;
    if (others_have_memory(bytes)) block.error().code = PARC_EAGAIN;
    return block;
  }
}

Result<void*> LateReads::allocate_for_write(std::size_t bytes) {
  auto block = allocate(bytes);
  if (!block || !operations_.any_late()) return block;
  auto room = allocate(longest());
  if (room)
    arena_.free(room.value());
  else
    arena_.free(block.value());
  return room ? std::move(block) : std::move(room);
}

std::uint64_t LateReads::longest() const {
  std::uint64_t most = 0;
  operations_.each_slot([&](Slot slot) {
    const auto id = shm::is_read(slot) ? operations_.live(slot) : std::nullopt;
    if (!id || !operations_.is_late(slot) || operations_.done(slot)) return;
    most = std::max(most, operations_.shared(slot).total.load(std::memory_order_relaxed));
  });
  return most;
}

// Of a read that is done: its bytes go to where its wait would bring them.
bool LateReads::empty_one() {
  bool any = false;
  operations_.each_slot([&](Slot slot) {
    const auto id = !any && shm::is_read(slot) ? operations_.live(slot) : std::nullopt;
    if (!id || !operations_.done(slot) || !operations_.hold(*id)) return;
    Operations::Entry& entry = operations_.entry(slot);
    const int error = operations_.shared(slot).error.load(std::memory_order_relaxed);
    any = entry.kind == shm::RequestKind::read && entry.block != nullptr;
    if (any) {
      if (error == PARC_OK || error == PARC_ETRUNCATE)
        scatter(entry.pieces, entry.block, bytes_of(entry, operations_.shared(slot)));
      arena_.free(std::exchange(entry.block, nullptr));
    }
    operations_.let_go(slot);
  });
  return any;
}

// The last one that was begun has the least to expect. One that gets its message meanwhile has begun, or is
// about to.
bool LateReads::take_back_one() {
  while (const auto id = last_to_expect()) {
    if (!operations_.hold(*id)) continue;
    const Slot slot = slot_of(*id);
    const bool local = operations_.entry(slot).local;
    const bool taken = local ? take_back_local(*id) : take_back(*id);
    operations_.let_go(slot);
    rest_.tell_others(); // who looked meanwhile has not found it
    if (taken || local || ring_.dead()) return taken;
  }
  return false;
}

bool LateReads::take_back(parc_op id) {
  if (!ask_back(id, shm::With::nobody)) return false;
  operations_.set_late(slot_of(id), true);
  arena_.free(std::exchange(operations_.entry(slot_of(id)).block, nullptr));
  return true;
}

// First here, where its message may come at any time, and then at the kernel.
bool LateReads::take_back_local(parc_op id) {
  const auto [block, with] = rest_.unplace_local(id);
  if (block == nullptr) return false;
  if (with != shm::With::nobody && !ask_back(id, with) && rest_.place_again_local(id, block)) return false;
  arena_.free(block);
  return true;
}

bool LateReads::ask_back(parc_op id, shm::With with) {
  shm::Request request{};
  request.kind = shm::RequestKind::unplace;
  request.with = with;
  request.extra = static_cast<std::uint64_t>(id);
  return errand_.run(request) == PARC_OK;
}

std::optional<parc_op> LateReads::last_to_expect() {
  std::optional<parc_op> last;
  std::uint32_t posted = 0;
  operations_.each_slot([&](Slot slot) {
    const auto id = shm::is_read(slot) ? operations_.live(slot) : std::nullopt;
    if (!id || operations_.begun(*id) || !operations_.hold(*id)) return;
    const Operations::Entry& entry = operations_.entry(slot);
    const bool bounced = entry.kind == shm::RequestKind::read && entry.block != nullptr;
    operations_.let_go(slot);
    const std::uint32_t when = operations_.shared(slot).posted.load(std::memory_order_relaxed);
    if (!bounced || (last && static_cast<std::int32_t>(when - posted) < 0)) return;
    last = id;
    posted = when;
  });
  return last;
}

} // namespace parc::client
