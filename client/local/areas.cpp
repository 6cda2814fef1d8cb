// SPDX-License-Identifier: BSD-3-Clause
#include "client/local/areas.hpp"

#include "parc/parc.h"

#include <sys/mman.h>

namespace parc::client {

Result<void> Areas::open(const shm::LetterboxPlace& own) {
  const std::size_t number = own.number / shm::area_letterboxes;
  if (number >= most_areas)
    return error(PARC_EVERSION, "the kernel of this host gave this program letterbox {}", own.number);
  PARC_TRY(area, shm::Segment::attach(own.area, shm::area_bytes));
  std::byte* const begin = area.data();
  own_ = reinterpret_cast<shm::Letterbox*>(begin) + own.number % shm::area_letterboxes;
  auto* const writable = reinterpret_cast<std::byte*>(&own_->all);
  auto* const behind = reinterpret_cast<std::byte*>(own_ + 1);
  const auto shut = [](std::byte* from, std::byte* to) {
    return from == to || mprotect(from, static_cast<std::size_t>(to - from), PROT_READ) == 0;
  };
  if (!shut(begin, writable) || !shut(behind, begin + shm::area_bytes))
    return system_error("cannot protect the letterboxes of others");
  areas_[number] = std::move(area);
  return success();
}

const shm::Letterbox* Areas::at(const shm::LetterboxPlace& place) {
  const std::size_t number = place.number / shm::area_letterboxes;
  if (number >= most_areas) return nullptr;
  shm::Segment& area = areas_[number];
  if (!area) {
    auto attached = shm::Segment::attach_to_read(place.area, shm::area_bytes);
    if (!attached) return nullptr;
    area = std::move(attached).value();
  }
  return reinterpret_cast<const shm::Letterbox*>(area.data()) + place.number % shm::area_letterboxes;
}

} // namespace parc::client
