// SPDX-License-Identifier: BSD-3-Clause
#include "daemon/program/extents.hpp"

#include <algorithm>
#include <bit>
#include <cstring>
#include <sys/mman.h>

namespace parc::daemon {

Result<void> Extents::map(std::uint64_t address, std::uint64_t length, int shmid) {
  if (length == 0 || address + length < address) return error(EINVAL, "a segment without a length");
  Extent* place = nullptr;
  for (Extent& extent : extents_) {
    if (extent.length == 0) {
      place = &extent;
    } else if (address < extent.address + extent.length && extent.address < address + length &&
               !extent.leaving) {
      return error(EINVAL, "a segment over another");
    }
  }
  if (place == nullptr) return error(ENOMEM, "more than {} segments", shm::max_segments);
  PARC_TRY(segment, shm::Segment::attach(shmid, length));
  *place = {.address = address, .length = length, .segment = std::move(segment)};
  return success();
}

bool Extents::unmap(std::uint64_t address) {
  for (Extent& extent : extents_) {
    if (extent.length == 0 || extent.leaving || extent.address != address) continue;
    extent.leaving = true;
    if (extent.uses == 0) extent = {};
    return true;
  }
  return false;
}

bool Extents::mapped(std::uint64_t address) const {
  return std::any_of(extents_.begin(), extents_.end(),
                     [&](const Extent& extent) { return extent.length != 0 && extent.address == address; });
}

std::uint64_t Extents::bytes() const {
  std::uint64_t all = 0;
  for (const Extent& extent : extents_) all += extent.length;
  return all;
}

bool Extents::resolve(std::uint64_t address, std::uint64_t length, protocol::Pieces& pieces,
                      Used& used) const {
  while (length != 0) {
    const auto found = std::find_if(extents_.begin(), extents_.end(), [&](const Extent& extent) {
      return extent.length != 0 && !extent.leaving && address >= extent.address &&
             address - extent.address < extent.length;
    });
    if (found == extents_.end()) return false;
    const std::uint64_t offset = address - found->address;
    const std::uint64_t n = std::min(length, found->length - offset);
    pieces.append({found->segment.data() + offset, n});
    used.set(static_cast<std::size_t>(found - extents_.begin()));
    address += n;
    length -= n;
  }
  return true;
}

bool Extents::resolve_list(std::uint64_t address, std::uint16_t count, std::uint64_t length,
                           protocol::Pieces& pieces, Used& used) const {
  if (count > shm::max_pieces) return false;
  protocol::Pieces list;
  if (!resolve(address, count * sizeof(shm::Piece), list, used)) return false;
  std::array<shm::Piece, shm::max_pieces> copy; // the program may change its list meanwhile
  list.copy_out(0, reinterpret_cast<std::byte*>(copy.data()), count * sizeof(shm::Piece));
  std::uint64_t sum = 0;
  for (std::uint16_t i = 0; i < count; ++i) {
    if (copy[i].length > length - sum || !resolve(copy[i].address, copy[i].length, pieces, used))
      return false;
    sum += copy[i].length;
  }
  return sum == length;
}

std::optional<Extents::InSegment> Extents::in_one_segment(std::uint64_t address, std::uint64_t length) const {
  for (const Extent& extent : extents_)
    if (extent.length != 0 && !extent.leaving && address >= extent.address &&
        address - extent.address <= extent.length && length <= extent.length - (address - extent.address))
      return InSegment{extent.segment.id(), extent.segment.size(), address - extent.address};
  return {};
}

void Extents::hold(const Used& used) {
  for (unsigned long left = used.to_ulong(); left != 0; left &= left - 1) {
    Extent& extent = extents_[static_cast<std::size_t>(std::countr_zero(left))];
    ++extent.uses;
    extent.pages = Extent::Pages::used;
  }
}

void Extents::drop(const Used& used) {
  for (unsigned long left = used.to_ulong(); left != 0; left &= left - 1) {
    Extent& extent = extents_[static_cast<std::size_t>(std::countr_zero(left))];
    if (--extent.uses == 0 && extent.leaving) extent = {};
  }
}

bool Extents::let_go() {
  bool more = false;
  for (Extent& extent : extents_) {
    if (extent.length == 0 || extent.pages == Extent::Pages::gone) continue;
    if (extent.uses != 0 || extent.pages == Extent::Pages::used) {
      extent.pages = extent.uses != 0 ? Extent::Pages::used : Extent::Pages::idle;
      more = true;
      continue;
    }
    (void)madvise(extent.segment.data(), extent.segment.size(), MADV_DONTNEED);
    extent.pages = Extent::Pages::gone;
  }
  return more;
}

} // namespace parc::daemon
