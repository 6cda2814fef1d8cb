// SPDX-License-Identifier: BSD-3-Clause
#include "client/operation/late_reads.hpp"

#include "client/base/pages.hpp"
#include "client/base/pieces.hpp"
#include "system/coarse_clock.hpp"

#include <algorithm>

namespace parc::client {
namespace {

constexpr std::uint32_t patience_ms = 60'000, second_look_ms = 100;

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
  bool enough = own == none || !operations_.wants_memory(own) || place(own), held = false;
  operations_.each_slot([&](Slot slot) {
    if (!enough || !shm::is_read(slot)) return;
    const auto id = operations_.live(slot);
    if (!id || !operations_.wants_memory(slot) || !operations_.hold(*id)) return;
    enough = !operations_.wants_memory(slot) || place(slot); // another thread may have been faster
    operations_.let_go(slot);
    held = true;
  });
  if (held) tell_others();
  if (enough) short_since_.store(0, std::memory_order_relaxed);
  return enough;
}

// Of a slot that the caller has taken or holds. What is given up is read by nobody: its message is taken
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

// What others have is theirs to leave; what is in this arena may come to be in one piece, and the system may
// have the rest.
LateReads::Hope LateReads::hope_for(std::uint64_t bytes, Slot than, std::uint64_t own) {
  std::uint64_t theirs = in_transit_.load(std::memory_order_relaxed) - own;
  operations_.each_slot([&](Slot slot) { theirs += slot != than ? operations_.memory_of(slot) : 0; });
  if (theirs >= bytes) return Hope::enough;
  if (theirs == 0) return Hope::none;
  const std::uint64_t there = arena_.size();
  if (there >= bytes) return Hope::some;
  auto rest = operations_.allocate(bytes - there);
  if (rest) arena_.free(rest.value());
  return rest ? Hope::some : Hope::none;
}

// What is under way may leave memory when it ends; but not for ever. Where nothing is, another look shows
// whether it has ended just now.
bool LateReads::in_vain(Slot slot, std::uint64_t bytes) {
  const bool hopeless = hope_for(bytes, slot) == Hope::none;
  return has_passed(short_since_, hopeless ? second_look_ms : patience_ms);
}

bool LateReads::has_passed(std::atomic<std::uint32_t>& since, std::uint32_t ms) {
  const std::uint32_t now = std::max(coarse_ms(), 1U);
  std::uint32_t begin = 0;
  if (since.compare_exchange_strong(begin, now, std::memory_order_relaxed)) return false;
  return now - begin >= ms;
}

void LateReads::place(Slot slot, void* block, std::uint64_t bytes) {
  Operations::Entry& entry = operations_.entry(slot);
  entry.set_block(block, bytes);
  operations_.set_late(slot, false);
  shm::Request request{};
  request.kind = shm::RequestKind::place;
  request.id = static_cast<std::uint64_t>(operations_.id_in(slot));
  request.flags = entry.flags.load(std::memory_order_relaxed) & MessageFlags::from_end;
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
  void* block = wants && bytes != 0 ? arena_.allocate_without_waiting(bytes) : nullptr;
  if (wants && bytes != 0 && block == nullptr) {
    operations_.collect_blocks();
    block = arena_.allocate_without_waiting(bytes);
  }
  if (wants && (block != nullptr || bytes == 0)) place(slot, block, bytes);
  operations_.let_go(slot);
}

Result<void*> LateReads::allocate(std::size_t bytes) {
  auto block = take(bytes);
  if (block) refused_since_.store(0, std::memory_order_relaxed);
  return block;
}

Result<void*> LateReads::take(std::size_t bytes, std::uint64_t own) {
  for (;;) {
    auto block = operations_.allocate(bytes);
    if (block || block.error().code != PARC_ENOMEM) return block;
    if (empty_one() || take_back_one()) continue;
    const Hope hope = hope_for(bytes, none, own);
    if (hope == Hope::none) return operations_.allocate(bytes); // what had it may have ended just now
    refuse(block.error(), hope);
    return block;
  }
}

// Once more, but not for ever.
void LateReads::refuse(Error& why, Hope hope) {
  if (hope == Hope::enough || !has_passed(refused_since_, patience_ms)) why.code = PARC_EAGAIN;
}

// The reads that it leaves room for may end before it begins.
Result<void*> LateReads::allocate_for_write(std::size_t bytes) {
  auto block = take(bytes);
  const std::uint64_t most = block && operations_.any_late() ? longest() : 0;
  if (block && most == 0) refused_since_.store(0, std::memory_order_relaxed);
  if (!block || most == 0) return block;
  in_transit_.fetch_add(bytes, std::memory_order_relaxed);
  auto room = take(most, bytes);
  if (!room && room.error().code == PARC_ENOMEM) refuse(room.error(), Hope::some);
  arena_.free(room ? room.value() : block.value());
  in_transit_.fetch_sub(bytes, std::memory_order_relaxed);
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
    const bool has_bytes = !any && shm::is_read(slot) && operations_.memory_of(slot) != 0;
    const auto id = has_bytes ? operations_.live(slot) : std::nullopt;
    if (!id || !operations_.done(slot) || !operations_.hold(*id)) return;
    Operations::Entry& entry = operations_.entry(slot);
    const int error = operations_.shared(slot).error.load(std::memory_order_relaxed);
    any = entry.block != nullptr;
    if (any) {
      if (!entry.placed && (error == PARC_OK || error == PARC_ETRUNCATE))
        scatter(entry.pieces, entry.block, bytes_of(entry, operations_.shared(slot)));
      arena_.free(entry.take_block());
    }
    operations_.let_go(slot);
  });
  if (any) tell_others();
  return any;
}

// The last one that was begun has the least to expect. One that gets its message meanwhile has begun, or is
// about to: the next older one is asked.
bool LateReads::take_back_one() {
  bool taken = false;
  for (auto next = last_to_expect({}); next && !taken && !ring_.dead(); next = last_to_expect(next)) {
    if (!operations_.hold(next->id)) continue;
    const Slot slot = slot_of(next->id);
    if (operations_.entry(slot).kind == shm::RequestKind::get) { // it has begun
      operations_.let_go(slot);
      continue;
    }
    taken = operations_.entry(slot).local ? take_back_local(next->id) : take_back(next->id);
    operations_.let_go(slot);
    tell_others();
  }
  return taken;
}

bool LateReads::take_back(parc_op id) {
  if (!ask_back(id, shm::With::nobody)) return false;
  operations_.set_late(slot_of(id), true);
  arena_.free(operations_.entry(slot_of(id)).take_block());
  return true;
}

// First here, where its message may come at any time, and then at the kernel.
bool LateReads::take_back_local(parc_op id) {
  const std::uint64_t bytes = operations_.memory_of(slot_of(id));
  in_transit_.fetch_add(bytes, std::memory_order_relaxed);
  const auto [block, with] = sleep_.unplace_local(id);
  const bool kept = block == nullptr ||
                    (with != shm::With::nobody && !ask_back(id, with) && sleep_.place_again_local(id, block));
  if (!kept) arena_.free(block);
  in_transit_.fetch_sub(bytes, std::memory_order_relaxed);
  return !kept;
}

bool LateReads::ask_back(parc_op id, shm::With with) {
  shm::Request request{};
  request.kind = shm::RequestKind::unplace;
  request.with = with;
  request.unplaced.read = static_cast<std::uint64_t>(id);
  return control_calls_.run(request) == PARC_OK;
}

// Who looked while one was held has not found it.
void LateReads::tell_others() {
  if (!sleep_.ended_here()) return;
  shm::Request bell{};
  bell.kind = shm::RequestKind::bell;
  bell.peer = rank_;
  (void)ring_.push(bell);
}

// The youngest that is older than that.
std::optional<LateReads::Waiting> LateReads::last_to_expect(const std::optional<Waiting>& before) const {
  std::optional<Waiting> last;
  const auto is_older = [](const Waiting& a, const Waiting& b) {
    const auto apart = static_cast<std::int32_t>(a.posted - b.posted);
    return apart != 0 ? apart < 0 : a.id < b.id;
  };
  operations_.each_slot([&](Slot slot) {
    if (!shm::is_read(slot) || operations_.memory_of(slot) == 0) return;
    const auto id = operations_.live(slot);
    if (!id || operations_.begun(*id)) return;
    const Waiting here{*id, operations_.shared(slot).posted.load(std::memory_order_relaxed)};
    if ((!before || is_older(here, *before)) && (!last || is_older(*last, here))) last = here;
  });
  return last;
}

} // namespace parc::client
