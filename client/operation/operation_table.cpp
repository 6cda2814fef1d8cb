// SPDX-License-Identifier: BSD-3-Clause
#include "client/operation/operation_table.hpp"

namespace parc::client {
namespace {

Entry* make_entries(unsigned block) { // free ones, as zeroed memory is
  return static_cast<Entry*>(map_own(shm::slots_in(block) * sizeof(Entry)));
}

} // namespace

OperationTable::OperationTable(shm::Control& control, ControlCalls& control_calls)
    : control_(control), control_calls_(control_calls), tables_(control), first_(make_entries(0)) {
  open(0);
}

OperationTable::~OperationTable() {
  for (unsigned block = 0; block <= shm::most_blocks; ++block) {
    Entry* const entries = block == 0 ? first_ : later_[block - 1];
    if (entries == nullptr) continue;
    for (const Half& half : halves_[block])
      for (Slot slot = half.first; slot < half.fresh; ++slot) (*this)[slot].~Entry();
    unmap_own(entries, shm::slots_in(block) * sizeof(Entry));
  }
}

void OperationTable::open(unsigned block) {
  const Slot first = shm::first_slot(block), half = shm::slots_in(block) / 2;
  halves_[block][0] = {.given = {}, .first = first, .fresh = first, .end = first + half};
  halves_[block][1] = {.given = {}, .first = first + half, .fresh = first + half, .end = first + 2 * half};
  opened_.store(block, std::memory_order_release);
}

std::optional<Slot> OperationTable::take(bool writes) {
  for (unsigned block = 0, last = opened_.load(std::memory_order_acquire); block <= last; ++block) {
    Half& half = halves_[block][writes ? 1 : 0];
    if (!half.given.empty()) {
      const Slot slot = half.given.back();
      half.given.pop_back();
      return slot;
    }
    if (half.fresh == half.end) continue;
    const Slot slot = half.fresh++;
    if (const std::size_t all = half.fresh - half.first; half.given.capacity() < all)
      half.given.reserve(2 * all); // give() needs no memory
    if (block != 0) {
      auto& used = control_.used[block - 1][writes ? 1 : 0];
      used.store(used.load(std::memory_order_relaxed) + 1, std::memory_order_relaxed);
    }
    return slot;
  }
  return {};
}

void OperationTable::give(Slot slot) {
  halves_[shm::block_of(slot)][shm::is_write(slot) ? 1 : 0].given.push_back(slot);
}

Result<void> OperationTable::grow(unsigned blocks) {
  const std::lock_guard hold(growing_);
  if (tables_.blocks() != blocks) return success(); // somebody else was here
  if (blocks == shm::most_blocks)
    return error(
        PARC_EAGAIN,
        "{} reads or as many writes of this program are unfinished, and that is all that there can be; "
        "finish some and call again",
        shm::most_reads);
  auto made = make_block(blocks + 1);
  if (!made)
    made.error() = error(
        made.error().code == PARC_EKERNEL ? PARC_EKERNEL : PARC_EAGAIN,
        "cannot have more than {} unfinished reads or writes: {}; finish some first, or give this process "
        "more memory (ulimit -v)",
        shm::index_of(shm::end_of_block(blocks) - 1) + 1, made.error().text);
  return made;
}

// The kernel attaches first; only then may a request name a slot of it.
Result<void> OperationTable::make_block(unsigned number) {
  PARC_TRY(segment, shm::Segment::create(shm::bytes_of_block(number)));
  Entry*& entries = later_[number - 1];
  if (entries == nullptr) entries = make_entries(number);
  shm::Request request{};
  request.kind = shm::RequestKind::grow;
  request.attached.block = number;
  request.length = shm::bytes_of_block(number);
  request.attached.segment = static_cast<std::uint64_t>(segment.id());
  if (const int answer = control_calls_.run(request); answer == PARC_EKERNEL)
    return error(answer, "the kernel of this host (parcd) has gone or has ended this program's session (parc "
                         "errors may say why)");
  else if (answer != PARC_OK)
    return error(answer, "the kernel of this host cannot attach {} bytes for them; its log says why",
                 request.length);
  control_.block_segments[number - 1].store(segment.id(), std::memory_order_relaxed);
  control_.blocks.store(number, std::memory_order_release);
  tables_.add(segment.data());
  segments_.push_back(std::move(segment));
  open(number);
  return success();
}

} // namespace parc::client
